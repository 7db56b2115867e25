/* Cascade.WindowRegimes: regimes of the window's pixels, each answer computed once.
 *
 * While the window moves, an answer that is slow to make (very many intervals) is used again,
 * stretched: its .a and .b say for which window it was made.
 */
"use strict";

Cascade.WindowRegimes = class WindowRegimes {
  static SLOW_MS = 6; // an answer dearer than this is not made in every frame of a zoom

  constructor(timeline) {
    Object.assign(this, { timeline, kept: new Map(), stretched: false });
  }

  clear() {
    this.kept.clear();
  }

  get regimes() {
    return this.timeline.lookup.regimes;
  }

  /** The answer for this window and these rows, made when it is not the one at hand. */
  remember(name, which, make) {
    const { view, columns, rowsKey, rest, tiles } = this.timeline;
    const key = `${columns} ${view.group} ${which} ${rowsKey}`;
    const kept = this.kept.get(name);
    const same = kept && kept.key === key;
    if (same && kept.pixels.a === view.a && kept.pixels.b === view.b) return kept.pixels;
    const near = same && kept.pixels.a < view.b && kept.pixels.b > view.a;
    if (near && rest && kept.cost > WindowRegimes.SLOW_MS && !tiles.sharp()) {
      this.stretched = true;
      return kept.pixels;
    }
    const [compute, rows] = make();
    const began = performance.now();
    const pixels = compute(this.regimes, rows, view.group, view.a, view.b, columns);
    Object.assign(pixels, { a: view.a, b: view.b });
    this.kept.set(name, { key, pixels, cost: performance.now() - began });
    return pixels;
  }

  /** Drawing an answer was dear as well. */
  alsoCost(name, ms) {
    this.kept.get(name).cost += ms;
  }

  /** Of all ranks as one row. */
  fleet() {
    return this.remember("fleet", "", () => [Cascade.regimePixels, [this.timeline.story.ranks]]);
  }

  /** Bodies and edges of the rows [first, end) on screen. */
  rowBodies(first, end) {
    const rows = () => this.timeline.rows.slice(first, end).map((row) => row.ranks);
    return this.remember("rows", `${first} ${end}`, () => [Cascade.regimeBodies, rows()]);
  }

  /** Of one set of ranks in the one pixel that t falls into. */
  onePixel(ranks, t) {
    const { view, columns } = this.timeline;
    const pixel = view.span / columns;
    const column = Cascade.clamp(Math.floor(((t - view.a) / view.span) * columns), 0, columns - 1);
    const from = view.a + column * pixel;
    return Cascade.regimePixels(this.regimes, [ranks], view.group, from, from + pixel, 1);
  }
};
