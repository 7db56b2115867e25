/* Mouse and touch on the timeline: hover reads, click selects, drag selects a stretch, wheel zooms. */
"use strict";

Cascade.Pointer = class Pointer {
  static SLACK = 4; // pixels a click may wander

  constructor(timeline) {
    Object.assign(this, { timeline, held: null });
    const canvas = timeline.overlay;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", () => { this.held = null; });
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", (event) => this.double(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  at(event) {
    const box = this.timeline.overlay.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** Which part of the canvas: overview, axis, gutter or plot. */
  part({ x, y }) {
    const { overview, left } = this.timeline;
    if (y < overview.height) return x < left ? "gutter" : "overview";
    if (x < left) return "gutter";
    return y < overview.height + overview.axisHeight ? "axis" : "plot";
  }

  inPlot(x) {
    const { left, plotWidth } = this.timeline;
    return Cascade.clamp(x, left, left + plotWidth);
  }

  down(event) {
    if (event.button > 1) return;
    const { view, overlay, overview } = this.timeline;
    const point = this.at(event);
    const part = this.part(point);
    this.held = { ...point, part, a: view.a, b: view.b, moved: false, how: "select" };
    if (part === "overview") {
      const [from, to] = overview.brush();
      const near = (x) => Math.abs(point.x - x) <= 5;
      this.held.how = near(from) ? "left" : near(to) ? "right" : point.x > from && point.x < to ? "brush" : "window";
    } else if (event.shiftKey || event.button === 1) this.held.how = "pan";
    overlay.setPointerCapture(event.pointerId);
    overlay.focus({ preventScroll: true });
    if (event.button === 1) event.preventDefault();
  }

  move(event) {
    const point = this.at(event);
    if (!this.held) {
      this.hover(point);
      return;
    }
    const { held } = this;
    if (!held.moved && Math.abs(point.x - held.x) < Pointer.SLACK) return;
    held.moved = true;
    if (held.part !== "gutter") this.drag(point);
  }

  drag(point) {
    const { timeline, held } = this;
    const { view, overview, plotWidth } = timeline;
    const [low, high] = view.extent();
    const by = ((point.x - held.x) / plotWidth) * (held.part === "overview" ? high - low : held.b - held.a);
    const between = (x, y) => [Math.min(x, y), Math.max(x, y)];
    if (held.how === "pan") view.look(held.a - by, held.b - by);
    else if (held.how === "brush") view.look(held.a + by, held.b + by);
    else if (held.how === "left") view.look(...between(held.a + by, held.b));
    else if (held.how === "right") view.look(...between(held.a, held.b + by));
    else if (held.how === "window") view.look(...between(overview.time(this.inPlot(held.x)), overview.time(this.inPlot(point.x))));
    else {
      const [a, b] = between(timeline.time(this.inPlot(held.x)), timeline.time(this.inPlot(point.x)));
      view.set({ area: { a: Math.max(0, a), b: Math.max(0, b) }, hover: null });
      timeline.lastCard = null;
      timeline.card.hidden = true;
    }
  }

  up(event) {
    const { held } = this;
    this.held = null;
    if (held && !held.moved) this.click(this.at(event), held.part);
  }

  click(point, part) {
    const { timeline } = this;
    const { view, overview } = timeline;
    if (part === "overview") {
      const t = overview.time(point.x);
      view.look(t - view.span / 2, t + view.span / 2);
      return;
    }
    const lane = timeline.laneAt(point.y);
    if (part === "gutter") {
      this.clickGutter(lane, point);
      return;
    }
    const patch = { area: null, follow: false };
    const hit = part === "plot" && lane ? this.read(lane, point) : null;
    patch.t = Cascade.clamp(hit && Number.isFinite(hit.at_ns) ? hit.at_ns : timeline.time(this.inPlot(point.x)), 0, view.t1);
    if (hit && hit.sel) Object.assign(patch, { sel: hit.sel, step: 0 });
    view.set(patch);
  }

  /** A title folds its lane, a row's label selects its rank. */
  clickGutter(lane, point) {
    if (!lane || !lane.foldable) return;
    const { timeline } = this;
    const r = lane.rowAt(point.y - timeline.topOf(lane));
    if (r < 0) Cascade.foldLane(timeline.view, lane.name);
    else if (timeline.rows[r].ranks.length === 1) timeline.view.set({ sel: `rank:${timeline.rows[r].ranks[0]}`, step: 0 });
  }

  read(lane, point) {
    const { timeline } = this;
    return lane.reading(timeline.time(point.x), point.y - timeline.topOf(lane), point.x);
  }

  hover(point) {
    const { timeline } = this;
    const { view, overlay, overview, left, plotWidth } = timeline;
    const part = this.part(point);
    let cursor = "crosshair";
    if (part === "overview") {
      const near = overview.brush().some((x) => Math.abs(point.x - x) <= 5);
      const inside = point.x > overview.brush()[0] && point.x < overview.brush()[1];
      cursor = near ? "ew-resize" : inside ? "grab" : "crosshair";
    }
    const lane = part === "overview" || part === "axis" ? null : timeline.laneAt(point.y);
    if (part === "gutter") cursor = lane && lane.foldable ? "pointer" : "default";
    overlay.style.cursor = cursor;
    if (part === "overview" || part === "gutter" || point.x > left + plotWidth) {
      this.leave();
      const words = part === "gutter" && lane && lane.tip && Cascade.words ? Cascade.words[lane.tip] : null;
      if (words && (!lane.foldable || lane.rowAt(point.y - timeline.topOf(lane)) < 0)) Cascade.showTip(timeline, point, lane.title, words);
      return;
    }
    const hit = lane ? this.read(lane, point) : { lines: [], rank: null };
    const t = timeline.time(point.x);
    view.set({ hover: { t, rank: hit.rank, lane: lane ? lane.name : null } });
    Cascade.showCard(timeline, point, t, lane, hit);
    if (hit.sel) overlay.style.cursor = "pointer";
  }

  leave() {
    this.timeline.view.set({ hover: null });
    this.timeline.lastCard = null;
    this.timeline.card.hidden = true;
  }

  double(event) {
    const { timeline } = this;
    const { view } = timeline;
    if (this.part(this.at(event)) === "overview") view.whole();
    else if (view.sel) {
      const found = Cascade.seek.find(timeline.story, view.sel);
      if (found && found.kind !== "wait") view.show(found.a, found.b);
    }
  }

  /** Ctrl+wheel zooms about the mouse, sideways or Shift+wheel pans; else the lanes scroll natively. */
  wheel(event) {
    const { timeline } = this;
    const { view, plotWidth } = timeline;
    const point = this.at(event);
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 100 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      view.zoom(Math.exp(Cascade.clamp(event.deltaY * unit, -300, 300) * 0.0025), timeline.time(this.inPlot(point.x)));
      return;
    }
    const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      view.pan((sideways * unit) / plotWidth);
    }
  }
};

/** Folds or unfolds a lane. */
Cascade.foldLane = (view, name) => {
  const { hidden = [], folded = [] } = view.lanes || {};
  const now = folded.includes(name) ? folded.filter((one) => one !== name) : [...folded, name];
  view.set({ lanes: hidden.length || now.length ? { hidden, folded: now } : null });
};

/** Hides or shows a lane. */
Cascade.toggleLane = (view, name) => {
  const { hidden = [], folded = [] } = view.lanes || {};
  const now = hidden.includes(name) ? hidden.filter((one) => one !== name) : [...hidden, name];
  view.set({ lanes: folded.length || now.length ? { hidden: now, folded } : null });
};
