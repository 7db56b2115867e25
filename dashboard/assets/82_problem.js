/* Panel "problem": what is wrong with what is on screen, and what to do about it. Empty when all is well. */
"use strict";

Cascade.panels.problem = (() => {
  const { el, replace, format, ui, rankSet } = Cascade;

  /** [{shape, tone, text, act}]: the banners of a view. act: a node, or null. */
  function banners(view, offline) {
    const found = [];
    const { problem, story } = view;
    if (problem && problem.kind === "building") found.push({ shape: "ring", tone: "dim", text: ui.capital(problem.text), act: null });
    else if (problem) found.push({ shape: "cross", tone: "bad", text: ui.capital(problem.text), act: actOf(problem, view), alert: true });
    if (!story) return found;
    if (story.missing.length) {
      const have = story.run.world_size - story.missing.length;
      found.push({
        shape: "question", tone: "unknown",
        text: `${format.count(have)} of ${format.count(story.run.world_size)} ranks have rows; missing: ${rankSet(story.missing)}. What they did is unknown, not fine: look for their spool folders, or start them with the same run id.`,
      });
    }
    if (story.gaps.length) found.push(gapBanner(view));
    const silent = story.silent.filter((one) => one.to_ns === null);
    if (silent.length) {
      const from = Math.min(...silent.map((one) => one.from_ns));
      const one = silent.length === 1;
      found.push({
        shape: "warn", tone: "warn",
        text: `No row from ${one ? `rank ${silent[0].rank}` : `ranks ${rankSet(silent.map((each) => each.rank))}`} for ${format.duration(silence(view, from))}: look at ${one ? "its process and its host" : "their processes and their hosts"}.`,
        act: ui.button("Go there", () => view.seek(from, { center: true })),
      });
    }
    if (story.run.state === "unclean") {
      found.push({
        shape: "warn", tone: "warn",
        text: "The run's end is missing: it is still running, or was cut off and its last rows may be missing. If a job was killed, its spool folders still hold them.",
      });
    }
    if (offline && story.waits && story.waits.source === "provisional") {
      found.push({ shape: "ring", tone: "dim", text: "This report was made before the analysis was done; make it again for final numbers." });
    }
    return found;
  }

  /** How long nothing has come since then, in whole seconds: to the last row of the others, or until now. */
  function silence(view, from) {
    const { pulse } = view;
    const quiet = pulse && pulse.state === "live" && pulse.last_row_age_s !== null ? pulse.last_row_age_s * 1e9 : 0;
    return Math.max(0, Math.round((view.t1 + quiet - from) / 1e9)) * 1e9;
  }

  function gapBanner(view) {
    const { gaps } = view.story;
    const known = gaps.filter((gap) => gap.num_events !== null);
    const num = known.reduce((sum, gap) => sum + gap.num_events, 0);
    const open = known.length < gaps.length ? " or more" : "";
    const [first] = [...gaps].sort((x, y) => x.at_ns - y.at_ns);
    const reasons = [...new Set(gaps.map((gap) => gap.reason).filter(Boolean))].slice(0, 3).join(", ");
    return {
      shape: "question", tone: "unknown",
      text: `${Cascade.plural(num, "event")}${open} of ${gaps.length === 1 ? `rank ${first.rank}` : `ranks ${rankSet(gaps.map((gap) => gap.rank))}`} known to be missing${reasons ? ` (${reasons})` : ""}: checks that need them are unknown.`,
      act: ui.button("Go to the first", () => view.seek(first.at_ns, { center: true })),
    };
  }

  function actOf(problem, view) {
    if (problem.kind === "not_found") return el("a", { class: "cr-link", text: "All runs", attrs: { href: "/dash/runs" } });
    if (problem.kind === "bad") return ui.button("Reload", () => window.location.reload());
    if (problem.kind === "gone" && view.story) return el("span", { class: "cr-dim", text: "what is shown is the last that came" });
    return null;
  }

  return function problem(element, { view, offline = false }) {
    const root = el("section", { class: "cr-problem", attrs: { "aria-label": "Problems" } });
    const { keep, destroy } = ui.cleanup(root);
    let told = "";

    function draw() {
      const found = banners(view, offline);
      const key = JSON.stringify(found.map((one) => [one.shape, one.text]));
      if (key === told) return;
      told = key;
      root.hidden = !found.length;
      found.forEach((one, i) => { if (one.act) one.act.dataset.key = `act ${i}`; });
      ui.redraw(root, () => replace(root, found.map((one) => el("div", { class: `cr-banner cr-tone-${one.tone}`, attrs: { role: one.alert ? "alert" : null } },
        ui.icon(one.shape), el("div", { text: one.text }), one.act || null))));
    }

    root.hidden = true;
    for (const name of ["problem", "story", "extent", "pulse"]) keep(view.on(name, draw));
    draw();
    element.append(root);
    return { destroy };
  };
})();
