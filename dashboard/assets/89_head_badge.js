/* The badge beside the run's name in the head of a page: live, or how it ended. The server wrote it once; a run ends
 * while pages are open. Cascade.headBadge(view) follows a view; other pages of a run ask now and then. */
"use strict";

Cascade.headBadge = (() => {
  const EVERY_MS = 5000;
  // As dashboard/shell/words.py says them.
  const SAYS = { live: ["live", "live"], waiting: ["waiting", "live"], ended: ["ended", "none"], stopped: ["stopped early", "none"], unclean: ["still running or cut off", "warn"] };

  /** The badge, while it says live: of a run that has ended nothing changes any more. */
  const badge = () => document.querySelector(".cs-head .cs-badge.cs-live");

  function say(state) {
    const node = badge();
    const [text, kind] = SAYS[state] || SAYS.live;
    if (!node || node.textContent === text) return;
    node.textContent = text;
    if (kind === "live") return;
    node.className = `cs-badge cs-${kind}`;
    node.title = "";
  }

  /** For pages without a run view. */
  async function look() {
    const head = document.querySelector(".cs-head");
    if (document.hidden || !badge() || !head.dataset.run || document.getElementById("cascade-run")) return;
    try {
      const answer = await fetch(`/v1/runs/${encodeURIComponent(head.dataset.run)}`, { credentials: "same-origin" });
      if (!answer.ok) return;
      const { state, clean_end: isClean } = await answer.json();
      say(state === "ended" && isClean === false ? "stopped" : state);
    } catch {
      // the collector is away: what it said last stays
    }
  }

  if (document.getElementById("react-entry-point")) setInterval(look, EVERY_MS);

  return function headBadge(view) {
    const draw = () => say((view.pulse && view.pulse.state) || (view.story && view.story.run.state));
    return [view.on("pulse", draw), view.on("story", draw)];
  };
})();
