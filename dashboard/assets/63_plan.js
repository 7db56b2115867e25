/* Panel "plan": what will happen next (demo runs say it), each item ticked when it was seen. */
"use strict";

Cascade.panels.plan = (() => {
  const { el, replace, ui } = Cascade;
  const PATTERN = /\b(GPU_FAIL_STOP|LINK_DELAY_HIGH|NODE_CHURN_HIGH|STATE_CORRUPTION|RECOVERY_DETECTED|STABLE_SYNC|RANK_SKEW_HIGH|NO_MAJORITY|OPERATOR|STRONG|CAUSAL|EVENTUAL)\b/g;
  const LOST = /\b(die|dies|died|killed|kills|SIGKILL|departs|is stopped|SIGSTOP)\b/i;
  const BACK = /\b(started again|comes back|came back|rejoins|joins|is added)\b/i;
  const ENDED = /\b(finish|finishes|finished|leave|to the last)\b|\b(all|job|run) ends\b/i;
  const JUDGED = /\b(report|verdict)\b/i;
  const SUBJECT = /\brank (\d+)\b|\b(agent) of host \d+\b/i;
  const FEWER = /\bsmaller view\b/i;
  const WHOLE = /\ball \w+ again\b/i;
  const AGENT = "agent";

  /** The capital words of an item: the faults and regimes that show it happened. */
  function signsOf(text) {
    return new Set(text.match(PATTERN) || []);
  }

  function walkShows(walk, { signs, text }, num_ranks) {
    for (const sign of signs) if (sign !== walk.fault && sign !== walk.to) return false;
    const is_whole = walk.members.length >= num_ranks;
    if ((FEWER.test(text) && is_whole) || (WHOLE.test(text) && !is_whole)) return false;
    return walk.from !== walk.to || signs.has(walk.fault);
  }

  /** The place of the next mark that shows an item without a walk: its fault, where its regime is held already. */
  function faultShows(story, { signs }, after) {
    return story.marks.filter((mark) => {
      if (mark.kind !== "health" || !signs.has(mark.fault) || mark.at_ns < after) return false;
      const held = story.walks.filter((walk) => walk.at_ns <= mark.at_ns).at(-1);
      return held !== undefined && [...signs].every((sign) => sign === mark.fault || sign === held.to);
    }).reduce((first, mark) => (first === null || mark.at_ns < first ? mark.at_ns : first), null);
  }

  /** [regime, time] in which the run began, or null before the first row. */
  function beginning({ regimes }) {
    const { start_ns } = regimes;
    if (!start_ns.length) return null;
    let first = 0;
    for (let i = 1; i < start_ns.length; i += 1) if (start_ns[i] < start_ns[first]) first = i;
    return [Cascade.REGIMES[regimes.regime[first]], regimes.start_ns[first]];
  }

  /** What an item says by its words: kind, signs of a walk, and whom it names (else whom the last one did). */
  function read(plan) {
    let subject = null;
    return plan.map((text, i) => {
      const named = text.match(SUBJECT);
      if (named) subject = named[2] ? AGENT : Number(named[1]);
      const signs = signsOf(text);
      const kind = JUDGED.test(text) ? "judged" : ENDED.test(text) ? "ended" : signs.size ? "walk"
        : BACK.test(text) ? "back" : LOST.test(text) ? "lost" : "none";
      return { kind, signs, subject, text, first: i === 0 };
    });
  }

  /** Losses and returns in time, each actor's once: {kind, who (a rank or "agent"), at_ns}. */
  function comings(story) {
    const found = new Map();
    const add = (kind, who, name, at_ns) => {
      const key = `${kind} ${name}`;
      if (!found.has(key) || at_ns < found.get(key).at_ns) found.set(key, { kind, who, at_ns });
    };
    for (const mark of story.marks) {
      const name = `${mark.rank}.${mark.incarnation}`;
      if (mark.kind === "departure" || (mark.kind === "health" && mark.fault === "GPU_FAIL_STOP")) add("lost", mark.rank, name, mark.at_ns);
      if (mark.kind === "join") add("back", mark.rank, name, mark.at_ns);
    }
    // No view tells of agents: that one was lost shows when it is there again.
    const agents = story.actors.filter((actor) => actor.kind === AGENT);
    for (const { rank, incarnation, first_ns } of agents.filter((actor) => actor.incarnation > 0)) {
      const before = agents.find((actor) => actor.rank === rank && actor.incarnation === incarnation - 1);
      add("lost", AGENT, `${rank}.${incarnation - 1}`, before ? before.last_ns : first_ns);
      add("back", AGENT, `${rank}.${incarnation}`, first_ns);
    }
    return [...found.values()].sort((x, y) => x.at_ns - y.at_ns);
  }

  /**
   * When each item was seen, or null; no two by the same event. The run's end or its verdict: by those. A fault
   * or a regime: by the next walk (in their order) that shows them, with all members or fewer where it says so; that
   * of the first item by the first row, and a fault in its regime by the fault alone. A loss or a return: by the
   * next one of whom it names. An item that shows nothing: when a later one was seen.
   */
  function done(story) {
    const over = ["ended", "stopped", "unclean"].includes(story.run.state);
    const begun = beginning(story);
    const items = read(story.plan);
    const left = comings(story);
    let after = -Infinity; // the last walk or fault that showed an item
    const num_ranks = story.ranks.length;
    const seen = items.map((item) => {
      const { kind, signs, subject, first } = item;
      if (kind === "judged") return ["ok", "violated", "unknown"].includes(story.verdict.state) ? story.t1_ns : null;
      if (kind === "ended") return over ? story.t1_ns : null;
      if (kind === "none") return null;
      if (kind === "walk") {
        if (begun && first && signs.size === 1 && signs.has(begun[0])) return begun[1];
        const walk = story.walks.find((one) => one.at_ns > after && walkShows(one, item, num_ranks));
        const fault = faultShows(story, item, after);
        const times = [walk ? walk.at_ns : null, fault].filter((at) => at !== null);
        if (!times.length) return null;
        after = Math.min(...times);
        return after;
      }
      const at = left.findIndex((one) => one.kind === kind && (subject === null || one.who === subject));
      return at < 0 ? null : left.splice(at, 1)[0].at_ns;
    });
    for (let i = seen.length - 2; i >= 0; i -= 1) {
      if (seen[i] === null && seen[i + 1] !== null && items[i].kind === "none") seen[i] = seen[i + 1];
    }
    return seen;
  }

  /** Whether an item was passed over: it did not come, and what was to follow it did (a rank came back before the climb). */
  function passed(seen) {
    const last = seen.findLastIndex((at) => at !== null);
    return seen.map((at, i) => at === null && i < last);
  }

  function line(text, at, is_passed, is_next, view) {
    const [shape, tone] = at !== null ? ["check", "ok"] : [is_passed ? "none" : "todo", "dim"];
    return el(
      "li",
      { class: at === null && !is_passed ? "" : "cr-done", attrs: { "aria-current": is_next ? "step" : null } },
      ui.icon(shape, tone),
      el("span", { text }),
      at !== null ? ui.button(Cascade.format.time(at, view), () => view.seek(at, { center: true }), { title: "go there" })
        : is_passed ? el("span", { class: "cr-badge", text: "not this time" }) : el("span", { class: "cr-sr", text: "not yet" }),
    );
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
      const over = ["ended", "stopped", "unclean"].includes(story.run.state);
      const skipped = passed(seen);
      const next = seen.findIndex((at, i) => at === null && !skipped[i]);
      if (!folded && !touched && (over || next < 0)) {
        folded = true;
        fold.open = false;
      }
      heading.textContent = over ? "What was to happen" : "What will happen next";
      left.textContent = `${seen.filter((at) => at !== null).length} of ${seen.length} seen`;
      replace(body, el("ol", { class: "cr-plan" }, story.plan.map((text, i) => line(text, seen[i], skipped[i], i === next, view))));
    }

    keep(view.on("story", draw));
    keep(view.on("clock", draw));
    draw();
    element.append(root);
    return { destroy };
  }

  Object.assign(plan, { done, passed });
  return plan;
})();
