/* Cascade.mount: the view of one run inside an element, from the verdict down to the waits. */
"use strict";

Cascade.mount = (() => {
  const { el } = Cascade;
  const LONGEST_WAIT_MS = 700; // for a sharp frame, from the first story on
  // Of the first screen, below the timeline: the replay bar, and of a violation its sentence and steps.
  const REPLAY_PX = 64;
  const WITNESS_PX = 270;

  /** Runs each action in a task of its own once the first sharp frame is there, or none will be for a while. */
  function afterFirstFrame(view, actions) {
    let timer = 0;
    let done;
    const ready = new Promise((resolve) => { done = resolve; });
    const next = () => {
      timer = 0;
      const action = actions.shift();
      if (action) action();
      if (actions.length) timer = setTimeout(next);
      else done();
    };
    const begin = (wait_ms) => {
      for (const off of offs.splice(0)) off();
      clearTimeout(timer);
      timer = setTimeout(next, wait_ms);
    };
    const told = () => {
      const { story, problem } = view;
      // Nothing will be drawn: there is no rank yet, or nothing to draw from.
      if (problem || (story && !story.ranks.length)) begin(0);
      else if (story && !timer) timer = setTimeout(() => begin(0), LONGEST_WAIT_MS);
    };
    const offs = [
      view.on("drawn", (sharp) => sharp && begin(0)), view.on("problem", told), view.on("story", told),
    ];
    told();
    return {
      ready,
      stop() {
        begin(0);
        clearTimeout(timer);
        done();
      },
    };
  }

  /**
   * mount(element, {source, view, offline}) -> {view, timeline, ready, destroy()}. ready: the story came, and
   * all parts are in.
   * source: answers story, pulse, state, tile, window. view: a Cascade.View; made when not given.
   * offline: a report file: no server to ask, no SQL links.
   */
  return function mount(element, { source, view = new Cascade.View(), offline = false }) {
    const given = { source, view, offline };
    const place = (name) => el("div", { class: `cr-${name}` });
    const [verdict, side, main, violation, below] = ["verdict", "side", "main", "at-violation", "below"].map(place);
    const [state, waits] = ["at-state", "at-waits"].map(place);
    const root = el("div", { class: "cr-run" });
    const parts = [];
    // A part that cannot be drawn must not take the others with it.
    const add = (panel, where) => {
      try {
        const part = panel(where, given);
        parts.push(part);
        return part;
      } catch (error) {
        console.error("a part of the run view failed:", error);
        where.append(el("p", {
          class: "cr-panel cr-body cr-error", attrs: { role: "alert" },
          text: `This part cannot be drawn (${error.message}); the others go on. Reload the page; cascade analyze says the same in words.`,
        }));
        return null;
      }
    };
    below.append(state, waits);

    element.append(root);
    const hasViolations = () => view.story !== null && view.story.violations.length > 0;
    const leave = () => REPLAY_PX + (hasViolations() ? WITNESS_PX : 0);
    // Before the first row there is nothing to draw but the plan; without a violation, no place for one.
    const arrange = () => {
      const { story } = view;
      const empty = story !== null && story.run.state === "waiting";
      for (const part of [side, main, below]) part.hidden = empty;
      root.classList.toggle("cr-is-waiting", empty);
      violation.hidden = empty || !hasViolations();
      root.classList.toggle("cr-has-violations", !violation.hidden);
    };
    arrange();
    const off = view.on("story", arrange);
    add(Cascade.panels.problem, root);
    root.append(verdict, side, main, violation, below);
    add(Cascade.panels.verdict, verdict);
    add(Cascade.panels.plan, verdict);
    let drawn = null;
    if (Cascade.timeline) {
      const timeline = el("div", { class: "cr-panel cr-timeline" });
      main.append(timeline);
      drawn = add((where) => Cascade.timeline(where, { ...given, leave }), timeline);
    }
    const later = afterFirstFrame(view, [
      () => add(Cascade.panels.incidents, side),
      () => add(Cascade.panels.replay, main),
      () => add(Cascade.panels.state, state),
      () => add(Cascade.panels.violation, violation),
      () => add(Cascade.panels.waits, waits),
    ]);
    const watcher = Cascade.watch(source, view, { offline });

    return {
      view,
      timeline: drawn && drawn.timeline,
      ready: Promise.all([watcher.ready, later.ready]),
      destroy() {
        off();
        later.stop();
        watcher.stop();
        for (const part of parts.reverse()) if (part && part.destroy) part.destroy();
        root.remove();
      },
    };
  };
})();
