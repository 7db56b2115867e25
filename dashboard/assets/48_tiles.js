/* Tiles: arrays from the source behind the busy lanes. What is at hand is drawn at once, stretched; the
 * sharp one replaces it. One question in flight, the latest wins. Whoever took a step (a turn of the wheel, a
 * key) may take the same again, so that one's tile is fetched next; neighbours are fetched when idle. */
"use strict";

Cascade.Tiles = class Tiles {
  static KEPT = 40;
  static KEPT_BYTES = 16e6;
  static IDLE_MS = 400; // the server draws one window at a time, and neighbours are not to be in the way
  static STEP_MS = 20; // what was waited for is on screen first
  static AGAIN_MS = 1000; // after a failure
  static SAME = 0.01; // of a pixel: windows that differ by less are one picture

  /** changed(): called when there is something new to draw. fit(a, b): that window as the view would show it. */
  constructor(source, changed, fit = (a, b) => [a, b]) {
    Object.assign(this, {
      source, changed, fit, kept: [], asking: null, wanted: null, before: null, version: "", failed: "", idle: 0, step: 0, stopped: false,
    });
  }

  /** By what a pulse says: what was drawn while the server still read is asked for once more when it is through. */
  static versionOf(pulse) {
    return pulse ? `${pulse.tiles_version}${pulse.building ? "+" : ""}` : "";
  }

  stop() {
    this.stopped = true;
    this.rest();
    if (this.asking) this.asking.abort.abort();
  }

  /** What the timeline shows now. version: the pulse's tiles_version; other than before = ask anew. */
  want(a, b, w, lanes, ranks, version) {
    const t0 = this.source.t0 || "";
    if (t0 !== this.t0) this.kept = []; // they count from another moment
    this.t0 = t0;
    const last = this.wanted;
    const wanted = this.question(a, b, { w, lanes, ranks, version });
    if (last && last.a === wanted.a && last.b === wanted.b && last.how === wanted.how) return;
    if (last && (last.a !== wanted.a || last.b !== wanted.b)) this.before = last;
    this.wanted = wanted;
    this.rest();
    // What is fetched for nobody is dropped, unless it is what is looked at now.
    if (this.asking && this.asking.ahead && !this.isOf(this.asking.question)) this.asking.abort.abort();
    this.next();
  }

  question(a, b, { w, lanes, ranks, version }) {
    return { a: Math.round(a), b: Math.round(b), w, lanes, ranks, version, how: JSON.stringify([w, lanes, ranks, version, this.t0]) };
  }

  /** Whether a question is for this very window. */
  isOf({ a, b, how }, wanted = this.wanted) {
    const near = ((wanted.b - wanted.a) / wanted.w) * Tiles.SAME;
    return how === wanted.how && Math.abs(a - wanted.a) <= near && Math.abs(b - wanted.b) <= near;
  }

  sharp() {
    return this.kept.find((tile) => this.isOf(tile.question));
  }

  rest() {
    clearTimeout(this.idle);
    clearTimeout(this.step);
  }

  async next() {
    if (this.stopped || this.asking || !this.wanted || !this.wanted.lanes.length) return;
    if (this.sharp()) {
      this.rest();
      this.step = setTimeout(() => this.prefetchStep(), Tiles.STEP_MS);
      this.idle = setTimeout(() => this.prefetch(), Tiles.IDLE_MS);
      return;
    }
    await this.ask(this.wanted);
    if (this.stopped) return;
    if (this.failed) this.idle = setTimeout(() => this.next(), Tiles.AGAIN_MS);
    else this.next();
  }

  /** What failed is asked for again now. */
  retry() {
    this.rest();
    this.next();
  }

  /** True when the tile came. ahead: nobody waits for it, nor is told when it does not come. */
  async ask(question, ahead = false) {
    const { t0 } = this;
    const { a, b, w, lanes, ranks, version } = question;
    const asking = { question, ahead, abort: new AbortController() };
    this.asking = asking;
    try {
      const tile = await this.source.tile(a, b, w, lanes, ranks, { signal: asking.abort.signal });
      if (this.stopped) return false;
      this.failed = "";
      if (t0 !== this.t0) return false;
      const hadIt = this.sharp();
      this.keep({ ...tile, question, asked: version });
      if (!ahead || !hadIt) this.changed();
      return true;
    } catch (error) {
      if (this.stopped || asking.abort.signal.aborted) return false;
      if (!(error instanceof Cascade.Problem)) console.error(error);
      if (ahead) return false;
      this.failed = error.message || "the answer cannot be read";
      this.changed();
      return false;
    } finally {
      this.asking = null;
    }
  }

  /** Newest first; an older version of the same place goes, and so do those too many. */
  keep(tile) {
    this.kept = [tile, ...this.kept.filter((one) => !(one.a === tile.a && one.b === tile.b && one.w === tile.w))];
    const stale = this.kept.filter((one) => one.asked !== tile.asked && one.a >= tile.a && one.b <= tile.b);
    let room = Tiles.KEPT_BYTES;
    this.kept = this.kept.filter((one) => !stale.includes(one)).slice(0, Tiles.KEPT).filter((one, i) => {
      room -= Object.values(one.layers).reduce((sum, layer) => sum + layer.data.length, 0);
      return !i || room >= 0;
    });
  }

  /** One neighbour a time: before, after, and the one further out. */
  async prefetch() {
    if (this.stopped || !this.wanted || document.hidden) return;
    if (this.asking) { // the same step again is on its way: it goes first
      if (this.asking.ahead) this.idle = setTimeout(() => this.prefetch(), Tiles.IDLE_MS);
      return;
    }
    const { a, b, w, lanes, ranks, version } = this.wanted;
    const span = b - a;
    for (const [from, to] of [[b, b + span], [a - span, a], [a - span / 2, b + span / 2]]) {
      if (from >= -span && !(await this.fetchAhead(this.question(from, to, { w, lanes, ranks, version })))) return;
    }
  }

  /** The same step again, from where the last one led to. */
  async prefetchStep() {
    const { before, wanted } = this;
    if (this.stopped || this.asking || !before || before.how !== wanted.how || document.hidden) return;
    const grown = (wanted.b - wanted.a) / (before.b - before.a);
    const a = wanted.a + (wanted.a - before.a) * grown;
    const [from, to] = this.fit(a, a + (wanted.b - wanted.a) * grown);
    await this.fetchAhead(this.question(from, to, wanted));
  }

  /** False when there is something better to be done. */
  async fetchAhead(question) {
    if (this.kept.some((tile) => this.isOf(tile.question, question))) return true;
    const { wanted } = this;
    const came = await this.ask(question, true);
    if (this.stopped) return false;
    if (this.wanted === wanted && this.sharp()) return came;
    this.next();
    return false;
  }

  /** Tiles with a lane's layer that touch the window, coarse first, so that the sharpest is on top. */
  layersFor(lane) {
    if (!this.wanted) return [];
    const { a, b } = this.wanted;
    const hits = this.kept.filter((tile) => tile.layers[lane] && tile.b > a && tile.a < b);
    const sharp = hits.find((tile) => this.isOf(tile.question));
    if (sharp) return [{ tile: sharp, layer: sharp.layers[lane] }];
    const coarseness = (tile) => (tile.b - tile.a) / tile.layers[lane].cols;
    return hits
      .sort((x, y) => coarseness(y) - coarseness(x))
      .slice(-6)
      .map((tile) => ({ tile, layer: tile.layers[lane] }));
  }

  /** Stretches [a, b] of a window that no tile of a lane covers yet. */
  uncovered(lane, a, b) {
    const gaps = [];
    let upto = a;
    for (const { tile } of this.layersFor(lane).sort((x, y) => x.tile.a - y.tile.a)) {
      if (tile.a > upto) gaps.push([upto, Math.min(tile.a, b)]);
      upto = Math.max(upto, tile.b);
    }
    if (upto < b) gaps.push([upto, b]);
    return gaps;
  }

  /** The sharpest layer at t with its column, or null. */
  sharpest(lane, t) {
    const layers = this.layersFor(lane).filter(({ tile }) => tile.a <= t && t < tile.b);
    if (!layers.length) return null;
    const { tile, layer } = layers[layers.length - 1];
    return { tile, layer, column: Math.min(layer.cols - 1, Math.floor(((t - tile.a) / (tile.b - tile.a)) * layer.cols)) };
  }
};
