/* Panel "plan": what will happen next (demo runs say it), each item ticked when it was seen. */
"use strict";

Cascade.panels.plan = (() => {
  const { el, replace, ui } = Cascade;
  const PATTERN = /\b(GPU_FAIL_STOP|LINK_DELAY_HIGH|NODE_CHURN_HIGH|STATE_CORRUPTION|RECOVERY_DETECTED|STABLE_SYNC|RANK_SKEW_HIGH|NO_MAJORITY|OPERATOR|STRONG|CAUSAL|EVENTUAL)\b/g;
  const DEPARTED = /\b(die|dies|died|killed|kills|SIGKILL|leaves|departs)\b/i;
  const ENDED = /\b(ends|finish|finishes|finished|leave|to the last)\b/i;
  const JUDGED = /\b(report|verdict)\b/i;

  /** The capital words of an item: the faults and regimes that show it happened. */
  function signsOf(text) {
    return new Set(text.match(PATTERN) || []);
  }

  function walkShows(walk, signs) {
    for (const sign of signs) if (sign !== walk.fault && sign !== walk.to) return false;
    return walk.from !== walk.to || signs.has(walk.fault);
  }

  /** [regime, time] in which the run began, or null before the first row. */
  function beginning({ regimes }) {
    const { start_ns } = regimes;
    if (!start_ns.length) return null;
    let first = 0;
    for (let i = 1; i < start_ns.length; i += 1) if (start_ns[i] < start_ns[first]) first = i;
    return [Cascade.REGIMES[regimes.regime[first]], regimes.start_ns[first]];
  }

  /**
   * When each item was seen, or null. The run's end or its verdict: by those. A fault or a regime: by the
   * next walk (in their order) that shows them, that of the first item by the first row. A death: by the fault
   * or the departure, whichever came first. An item that shows nothing: when a later one was seen.
   */
  function done(story) {
    const over = ["ended", "unclean"].includes(story.run.state);
    const begun = beginning(story);
    let next_walk = 0;
    const seen = story.plan.map((text, i) => {
      const signs = signsOf(text);
      if (JUDGED.test(text)) return ["ok", "violated", "unknown"].includes(story.verdict.state) ? story.t1_ns : null;
      if (ENDED.test(text)) return over ? story.t1_ns : null;
      if (signs.size) {
        if (begun && i === 0 && signs.size === 1 && signs.has(begun[0])) return begun[1];
        const at = story.walks.findIndex((walk, n) => n >= next_walk && walkShows(walk, signs));
        if (at < 0) return null;
        next_walk = at + 1;
        return story.walks[at].at_ns;
      }
      if (!DEPARTED.test(text)) return null;
      const times = story.marks.filter((m) => m.kind === "departure" || m.fault === "GPU_FAIL_STOP").map((m) => m.at_ns);
      return times.length ? Math.min(...times) : null;
    });
    for (let i = seen.length - 2; i >= 0; i -= 1) {
      const shows = signsOf(story.plan[i]).size || [DEPARTED, ENDED, JUDGED].some((words) => words.test(story.plan[i]));
      if (seen[i] === null && seen[i + 1] !== null && !shows) seen[i] = seen[i + 1];
    }
    return seen;
  }

  /** It folds itself once all of it was seen or the run is over, and does not touch what the reader opened or closed. */
  function plan(element, { view }) {
    const heading = el("h2", { text: "What will happen next", attrs: { id: "cascade-h-plan" } });
    const left = el("span", { class: "cr-dim" });
    const body = el("div", { class: "cr-body" });
    const fold = el("details", { attrs: { open: true } }, el("summary", { class: "cr-head cr-plan-head" }, heading, left), body);
    const root = el("section", { class: "cr-panel cr-plan-panel", attrs: { "aria-labelledby": "cascade-h-plan" } }, fold);
    const { keep, destroy } = ui.cleanup(root);
    let folded = false; // once
    let touched = false;
    fold.querySelector("summary").addEventListener("click", () => { touched = true; });

    function draw() {
      const { story } = view;
      root.hidden = !story || !story.plan.length;
      if (root.hidden) return;
      const seen = done(story);
      const next = seen.indexOf(null);
      const over = ["ended", "unclean"].includes(story.run.state);
      if (!folded && !touched && (over || next < 0)) {
        folded = true;
        fold.open = false;
      }
      heading.textContent = over ? "What was to happen" : "What will happen next";
      left.textContent = `${seen.filter((at) => at !== null).length} of ${seen.length} seen`;
      replace(body, el("ol", { class: "cr-plan" }, story.plan.map((text, i) => el(
        "li",
        { class: seen[i] === null ? "" : "cr-done", attrs: { "aria-current": i === next ? "step" : null } },
        ui.icon(seen[i] === null ? "todo" : "check", seen[i] === null ? "dim" : "ok"),
        el("span", { text }),
        seen[i] === null ? el("span", { class: "cr-sr", text: "not yet" })
          : ui.button(Cascade.format.time(seen[i], view), () => view.seek(seen[i], { center: true }), { title: "go there" }),
      ))));
    }

    keep(view.on("story", draw));
    keep(view.on("clock", draw));
    draw();
    element.append(root);
    return { destroy };
  }

  plan.done = done;
  return plan;
})();
