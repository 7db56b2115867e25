/* Cascade.View: the one state of a run's page. Every panel reads it and listens to it.
 *
 * Fields (times are ns since t0):
 *   a, b       window on screen             t          the cursor
 *   t1         end of the run as known      story      the last story, or null
 *   pulse      the last pulse, or null      problem    null | {kind, text}: said in a banner
 *   follow     the right edge follows a live run; the cursor stands at the newest row
 *   reach      how much of the run a window that follows shows at most: of a shorter run all of it
 *   playing    the replay clock runs (the replay bar moves t)      speed   1 = real time
 *   skipQuiet  playing jumps over stretches in which nothing happens
 *   sel        null | "violation:ID" | "wait:BY:WAITED" | "walk:GROUP:EPOCH" | "rank:N" | "incident:ID"
 *   step       index into the selected violation's steps
 *   hover      null | {t, rank: n|null, lane: name|null}: the ghost cursor
 *   area       null | {a, b}: the selected stretch
 *   flags      [ns]: moments the reader marked
 *   theme      "auto" | "light" | "dark"    clockMode  "start" | "utc" | "local"
 *   rowsBy     "auto" (hosts where there are very many ranks) | "rank" | "host"
 *   sort       "id" | "blamed" | "waited" | "violations"
 *   filter     null | "STRONG" | "CAUSAL" | "EVENTUAL" | "no row": others are dimmed
 *   group      the consistency group whose regimes are shown
 *   lanes      null (all, unfolded) | {hidden: [name], folded: [name]}
 *
 * set(patch) changes fields and emits what changed, each event once:
 *   window(a, b)  cursor(t)  hover(hover)  select(sel)  story(story)  pulse(pulse)  problem(problem)
 *   mode({follow, playing, speed, skipQuiet})  theme(theme)  clock(clockMode)  area(area)  flags(flags)
 *   lanes(lanes)  sort(sort)  filter(filter)  group(group)  step(step)
 * and then change(keys) with the names of the fields. The timeline emits drawn(sharp) after each frame.
 */
"use strict";

Cascade.View = (() => {
  const SHORTEST_NS = 1000; // a window of one microsecond: finer than any clock here
  const EVENTS = {
    a: "window", b: "window", t: "cursor", hover: "hover", sel: "select", story: "story", t1: "extent",
    pulse: "pulse", problem: "problem", follow: "mode", reach: "reach", playing: "mode", speed: "mode", skipQuiet: "mode",
    theme: "theme", clockMode: "clock", area: "area", flags: "flags", lanes: "lanes", sort: "sort",
    filter: "filter", group: "group", step: "step",
    rowsBy: "sort",
  };

  function same(x, y) {
    if (x === y) return true;
    if (typeof x !== "object" || typeof y !== "object" || x === null || y === null) return false;
    return JSON.stringify(x) === JSON.stringify(y);
  }

  class View extends Cascade.Emitter {
    static REACH_NS = 60e9;

    constructor(start = {}) {
      super();
      Object.assign(this, {
        a: 0, b: 1e9, t: 0, t1: 1e9, story: null, pulse: null, problem: null, follow: false, reach: View.REACH_NS,
        playing: false, speed: 1, skipQuiet: false, sel: null, step: 0, hover: null, area: null,
        flags: [], theme: "auto", clockMode: "start", sort: "id", filter: null, group: "world",
        lanes: null, rowsBy: "auto",
      }, start);
    }

    /** Changes fields; unknown names and times that are no numbers are refused with a TypeError. */
    set(patch) {
      const changed = [];
      for (const [name, value] of Object.entries(patch)) {
        if (!(name in EVENTS)) throw new TypeError(`View.set: no field ${name}`);
        if (["a", "b", "t", "t1", "speed", "reach"].includes(name) && !Number.isFinite(value)) {
          throw new TypeError(`View.set: ${name} is no number`);
        }
        const equal = name === "story" || name === "pulse" ? this[name] === value : same(this[name], value);
        if (equal) continue;
        this[name] = value;
        changed.push(name);
      }
      if (!changed.length) return false;
      for (const event of new Set(changed.map((name) => EVENTS[name]))) this.emit(event, ...this.values(event));
      this.emit("change", changed);
      return true;
    }

    values(event) {
      switch (event) {
        case "window": return [this.a, this.b];
        case "cursor": return [this.t];
        case "select": return [this.sel];
        case "clock": return [this.clockMode];
        case "extent": return [this.t1];
        case "mode": {
          const { follow, playing, speed, skipQuiet } = this;
          return [{ follow, playing, speed, skipQuiet }];
        }
        default: return [this[event]];
      }
    }

    get span() {
      return this.b - this.a;
    }

    /** [from, to] of all there is to see: the run, with a little air so that its ends are visible. */
    extent() {
      const air = Math.max(this.t1 * 0.01, 1e6);
      return [-air, this.t1 + air];
    }

    /** The window [a, b] kept inside the run and no shorter than a microsecond. */
    fit(a, b) {
      const [low, high] = this.extent();
      const span = Cascade.clamp(b - a, SHORTEST_NS, high - low);
      const middle = (a + b) / 2;
      const from = Cascade.clamp(b - a === span ? a : middle - span / 2, low, high - span);
      return [from, from + span];
    }

    /** The reader looks at [a, b]: kept inside the run; following ends. */
    look(a, b) {
      const [from, to] = this.fit(a, b);
      this.set({ a: from, b: to, follow: false });
    }

    /** Shows [a, b] with air around it (share of its length on each side). */
    show(a, b, air = 0.15) {
      const length = Math.max(b - a, 1e6);
      const middle = (a + b) / 2;
      this.look(middle - length * (0.5 + air), middle + length * (0.5 + air));
    }

    whole() {
      this.look(...this.extent());
    }

    /** factor < 1 zooms in; the moment `at` stays where it is on screen (default: cursor, else middle). */
    zoom(factor, at) {
      const inside = this.t >= this.a && this.t <= this.b;
      const fixed = at === undefined ? (inside ? this.t : (this.a + this.b) / 2) : at;
      const [low, high] = this.extent();
      const span = Cascade.clamp(this.span * factor, SHORTEST_NS, high - low);
      const share = (fixed - this.a) / this.span;
      this.look(fixed - span * share, fixed - span * share + span);
    }

    /** share of the window's length; negative goes back in time. */
    pan(share) {
      this.look(this.a + this.span * share, this.b + this.span * share);
    }

    /** Puts the cursor at t and, where it would be out of sight, moves the window along. */
    seek(t, { center = false } = {}) {
      const at = Cascade.clamp(t, 0, Math.max(this.t1, 0));
      const patch = { t: at, follow: false };
      if (center || at < this.a || at > this.b) {
        [patch.a, patch.b] = this.fit(at - this.span / 2, at + this.span / 2);
      }
      this.set(patch);
    }

    /** Follow a live run: the newest row stays near the right edge, the cursor on it. What the reader zoomed to stays as
     * long as it is; who looks at all of the run goes on seeing all of it while it is short. */
    followLive() {
      const isWhole = this.a <= 0 && this.b >= this.t1;
      this.set({ follow: true, playing: false, reach: isWhole ? Math.max(this.span, View.REACH_NS) : this.span });
      this.advance(this.t1);
    }

    /** The run is known up to t1 now; a window that follows moves along. */
    advance(t1) {
      const patch = { t1: Math.max(t1, 1) };
      if (this.follow) {
        const span = Math.min(this.reach, Math.max(patch.t1 * 1.06, 1e9));
        const right = Math.max(patch.t1 + span * 0.04, span * 0.98);
        Object.assign(patch, { a: right - span, b: right, t: patch.t1 });
      }
      this.set(patch);
    }

    /** Whether a run is shown whole, as one that is over in a moment is. */
    isShort() {
      return this.t1 <= View.REACH_NS;
    }
  }

  return View;
})();
