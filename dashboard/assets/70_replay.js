/* Panel "replay": the replay bar. One cursor (view.t); the clock runs on requestAnimationFrame. */
"use strict";

Cascade.panels.replay = (() => {
  const { el, svg, replace, format, ui, clamp } = Cascade;
  const SECOND = 1e9;
  const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100, 500, 1000];
  const QUIET_S = 5; // a stretch that would take longer than this to play is quiet when nothing is in it
  const LEAD_S = 1; // where a jump lands: this long before what comes next
  const SCRUB_STEPS = 10000;
  const MOST_TICKS = 400;

  // Tests put their own frames and clock here.
  const clock = {
    request: (fn) => window.requestAnimationFrame(fn),
    cancel: (id) => window.cancelAnimationFrame(id),
  };

  /** Times of what is marked, sorted: walks, marks, debts, violations. */
  function moments(story) {
    const times = new Set([0, story.t1_ns]);
    for (const walk of story.walks) times.add(walk.at_ns);
    for (const mark of story.marks) times.add(mark.at_ns);
    for (const one of story.violations) times.add(one.at_ns);
    for (const debt of story.debts) {
      times.add(debt.opened_ns);
      if (debt.closed_ns !== null) times.add(debt.closed_ns);
    }
    return [...times].sort((a, b) => a - b);
  }

  /** Where the cursor goes from t when quiet stretches are skipped: t itself, or just before the next moment. */
  function skip(times, t, speed) {
    const next = times.find((at) => at > t);
    if (next === undefined) return t;
    const before = times.findLast((at) => at <= t);
    const quiet = QUIET_S * SECOND * speed;
    const lead = LEAD_S * SECOND * speed;
    const calm = before === undefined || t - before >= lead;
    return calm && next - t > quiet ? next - lead : t;
  }

  function step(view, by) {
    view.set({ playing: false });
    return Cascade.seek.transition(view, by);
  }

  function toggle(view) {
    if (view.playing) {
      view.set({ playing: false });
      return;
    }
    // At the end, play starts anew.
    if (view.t >= view.t1 - 1e6) view.seek(view.area ? view.area.a : 0);
    view.set({ playing: true, follow: false });
  }

  function replay(element, { view }) {
    const root = el("section", { class: "cr-panel cr-replay", attrs: { "aria-label": "Replay" } });
    const { keep, destroy } = ui.cleanup(root);
    let frame = 0;
    let last = null;
    let loop = false;
    let times = [];

    const play = ui.button("Play", () => toggle(view), { shape: "play", title: "Play or pause (Space)" });
    const prev = ui.button("Previous transition", () => step(view, -1), { shape: "prev", title: "Previous transition (left arrow)" });
    const next = ui.button("Next transition", () => step(view, 1), { shape: "next", title: "Next transition (right arrow)" });
    const back = ui.button("−1 s", () => view.seek(view.t - SECOND), { title: "One second back (Shift + left arrow)" });
    const forth = ui.button("+1 s", () => view.seek(view.t + SECOND), { title: "One second on (Shift + right arrow)" });
    const speed = el("select", {
      class: "cr-select", attrs: { "aria-label": "Speed" },
      on: { change: () => view.set({ speed: Number(speed.value) }) },
    }, SPEEDS.map((value) => el("option", { text: `${value}×`, attrs: { value } })));
    const quiet = ui.button("Skip quiet", () => view.set({ skipQuiet: !view.skipQuiet }), { title: Cascade.words["skip quiet"], pressed: false });
    const loops = ui.button("Loop", () => { loop = !loop; mode(); }, { title: "Play the selected stretch again and again; drag on the timeline to select one", pressed: false });
    const follow = ui.button("Follow live", () => view.followLive(), { title: "Keep the newest row in sight (End)", pressed: false });
    const scrub = el("input", {
      attrs: { type: "range", min: 0, max: SCRUB_STEPS, step: 1, value: 0, "aria-label": "Position in the run" },
      on: { input: () => { view.set({ playing: false }); view.seek((Number(scrub.value) / SCRUB_STEPS) * view.t1); } },
    });
    const ticks = el("div", { class: "cr-ticks", attrs: { "aria-hidden": "true" } });
    const now = el("output", { class: "cr-time", attrs: { "aria-label": "Time of the cursor", "aria-live": "off" } });
    const mode_of_clock = el("select", {
      class: "cr-select", attrs: { "aria-label": "Show times as" },
      on: { change: () => view.set({ clockMode: mode_of_clock.value }) },
    }, [["start", "since start"], ["utc", "UTC"], ["local", "local"]].map(([value, text]) => el("option", { text, attrs: { value } })));
    root.append(
      el("div", { class: "cr-replay-group" }, prev, play, next), el("div", { class: "cr-replay-group" }, back, forth), speed,
      el("div", { class: "cr-scrub" }, scrub, ticks), now, mode_of_clock,
      el("div", { class: "cr-replay-group" }, quiet, loops, follow),
    );

    function tick(stamp) {
      frame = 0;
      if (!view.playing) return;
      if (last !== null) advance(((stamp - last) / 1000) * SECOND * view.speed);
      last = stamp;
      if (view.playing) frame = clock.request(tick);
    }

    function advance(by) {
      let t = view.t + by;
      if (view.skipQuiet) t = skip(times, t, view.speed);
      const low = loop && view.area ? view.area.a : 0;
      const high = loop && view.area ? view.area.b : view.t1;
      if (t < high && (t > low || by > 0)) moveTo(Math.max(t, low));
      else if (loop) moveTo(by > 0 ? low : high);
      else {
        moveTo(by > 0 ? high : low);
        view.set({ playing: false });
      }
    }

    /** The window turns the page when the cursor leaves it, so that the picture stands still in between. */
    function moveTo(t) {
      const patch = { t: clamp(t, 0, view.t1) };
      if (patch.t > view.b || patch.t < view.a) {
        const span = view.b - view.a;
        [patch.a, patch.b] = view.fit(patch.t - span * 0.1, patch.t + span * 0.9);
      }
      view.set(patch);
    }

    function mode() {
      const label = view.playing ? "Pause" : "Play";
      if (play.getAttribute("aria-label") !== label) {
        play.setAttribute("aria-label", label);
        replace(play, ui.icon(view.playing ? "pause" : "play"));
      }
      if (!SPEEDS.includes(view.speed) && !speed.querySelector(`option[value="${view.speed}"]`)) {
        speed.append(el("option", { text: `${view.speed}×`, attrs: { value: view.speed } }));
      }
      speed.value = String(view.speed);
      quiet.setAttribute("aria-pressed", String(view.skipQuiet));
      loops.setAttribute("aria-pressed", String(loop));
      follow.setAttribute("aria-pressed", String(view.follow));
      if (view.playing && !frame) {
        last = null;
        frame = clock.request(tick);
      } else if (!view.playing && frame) {
        clock.cancel(frame);
        frame = 0;
      }
    }

    function cursor() {
      const text = format.time(view.t, view);
      now.textContent = text;
      if (document.activeElement !== scrub || view.playing) scrub.value = String(Math.round((view.t / Math.max(view.t1, 1)) * SCRUB_STEPS));
      scrub.setAttribute("aria-valuetext", text);
      const { story } = view;
      const walks = story ? Cascade.seek.moments(story, view.group) : [];
      prev.disabled = !walks.some((at) => at < view.t);
      next.disabled = !walks.some((at) => at > view.t);
    }

    function drawTicks() {
      const { story } = view;
      if (!story) return;
      times = moments(story);
      const end = Math.max(view.t1, 1);
      const line = (at, bad) => {
        const x = ((at / end) * 100).toFixed(3);
        return svg("line", { class: `cr-tick${bad ? " cr-tick-bad" : ""}`, attrs: { x1: x, x2: x, y1: 0, y2: 6 } });
      };
      replace(ticks, svg("svg", { attrs: { viewBox: "0 0 100 6", preserveAspectRatio: "none" } },
        story.walks.slice(0, MOST_TICKS).map((walk) => line(walk.at_ns, false)),
        story.violations.slice(0, MOST_TICKS).map((one) => line(one.at_ns, true))));
      follow.hidden = !["live", "waiting"].includes(story.run.state);
      cursor();
    }

    keep(view.on("mode", mode));
    keep(view.on("cursor", cursor));
    keep(view.on("clock", () => { mode_of_clock.value = view.clockMode; cursor(); }));
    keep(view.on("story", drawTicks));
    keep(view.on("extent", drawTicks));
    keep(view.on("group", cursor));
    keep(() => { if (frame) clock.cancel(frame); frame = 0; });
    mode_of_clock.value = view.clockMode;
    drawTicks();
    mode();
    cursor();
    element.append(root);
    return { destroy };
  }

  Object.assign(replay, {
    clock, skip, moments, toggle, next: (view) => step(view, 1), prev: (view) => step(view, -1),
  });
  return replay;
})();
