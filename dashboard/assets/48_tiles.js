/* Tiles: arrays from the source behind the busy lanes. What is at hand is drawn at once, stretched; the
 * sharp one replaces it. One question in flight, the latest wins. Whoever took a step (a turn of the wheel, a
 * key) may take the same again, so that one's tile is fetched next; neighbours are fetched when idle. */
"use strict";

Cascade.Tiles = class Tiles {
  static KEPT = 40;
  static KEPT_BYTES = 16e6;
  static IDLE_MS = 400; // the server draws one window at a time, and neighbours are not to be in the way
  static STEP_MS = 20; // what was waited for is on screen first
  static SAME = 0.01; // of a pixel: windows that differ by less are one picture

  /** changed(): called when there is something new to draw. fit(a, b): that window as the view would show it. */
  constructor(source, changed, fit = (a, b) => [a, b]) {
    Object.assign(this, {
      source, changed, fit, kept: [], asking: null, wanted: null, before: null, version: "", failed: false, idle: 0, step: 0, stopped: false,
    });
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
    if (this.failed) this.idle = setTimeout(() => this.next(), 1000);
    else this.next();
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
      this.failed = false;
      if (t0 !== this.t0) return false;
      const hadIt = this.sharp();
      this.keep({ ...tile, question, asked: version });
      if (!ahead || !hadIt) this.changed();
      return true;
    } catch (error) {
      if (this.stopped || asking.abort.signal.aborted) return false;
      if (!(error instanceof Cascade.Problem)) console.error(error);
      if (ahead) return false;
      this.failed = true;
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

  /** The sharpest layer at t with its column, or null. */
  sharpest(lane, t) {
    const layers = this.layersFor(lane).filter(({ tile }) => tile.a <= t && t < tile.b);
    if (!layers.length) return null;
    const { tile, layer } = layers[layers.length - 1];
    return { tile, layer, column: Math.min(layer.cols - 1, Math.floor(((t - tile.a) / (tile.b - tile.a)) * layer.cols)) };
  }
};

/** Sums of waited and caused over the window: from the tile at once ("about"), exact when it has settled. */
Cascade.WindowSums = class WindowSums {
  static SETTLED_MS = 300;
  static AGAIN_MS = 2000; // a live run has something new with each pulse

  constructor(timeline) {
    Object.assign(this, { timeline, exact: null, timer: 0, abort: null });
  }

  stop() {
    clearTimeout(this.timer);
    if (this.abort) this.abort.abort();
  }

  place() {
    const { view } = this.timeline;
    return `${view.a} ${view.b} ${view.group}`;
  }

  key() {
    const { view } = this.timeline;
    return `${this.place()} ${view.pulse ? view.pulse.tiles_version : ""}`;
  }

  /** The window changed: ask again when it rests. */
  moved() {
    this.plan(WindowSums.SETTLED_MS);
  }

  /** A pulse came: ask again, a while after the last answer, when what is drawn is newer than that. */
  grown() {
    if (this.planned || this.abort || (this.exact && this.exact.key === this.key())) return;
    this.plan(Math.max(WindowSums.SETTLED_MS, (this.asked || 0) + WindowSums.AGAIN_MS - Date.now()));
  }

  plan(wait_ms) {
    clearTimeout(this.timer);
    this.planned = true;
    this.timer = setTimeout(() => {
      this.planned = false;
      this.ask();
    }, wait_ms);
  }

  async ask() {
    const { view, source } = this.timeline;
    const [key, place, t1] = [this.key(), this.place(), view.t1];
    if (this.exact && this.exact.key === key) return;
    if (this.abort) this.abort.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.asked = Date.now();
    try {
      const answer = await source.window(Math.max(0, view.a), Math.max(1, view.b), { signal: abort.signal, group: view.group });
      this.exact = { key, place, t1, about: Boolean(answer.about || answer.building), by_rank: new Map(answer.by_rank.map((row) => [row.rank, row])) };
      this.timeline.touch();
    } catch (error) {
      if (!(error instanceof Cascade.Problem) && error.name !== "AbortError") console.error(error);
    } finally {
      if (this.abort === abort) this.abort = null;
    }
  }

  /** {exact, values: seconds per row on screen} of a lane, or null before anything is known. */
  of(lane) {
    const { rows } = this.timeline;
    if (this.exact && this.exact.place === this.place()) {
      const { view } = this.timeline;
      // What came since the answer lies behind a window of the past.
      const isNow = this.exact.key === this.key() || view.b <= this.exact.t1;
      const name = `${lane}_s`;
      const value = (rank) => (this.exact.by_rank.get(rank) || {})[name] || 0;
      return { exact: isNow && !this.exact.about, values: rows.map((row) => row.ranks.reduce((sum, rank) => sum + value(rank), 0)) };
    }
    const layers = this.timeline.tiles.layersFor(lane);
    if (!layers.length) return null;
    const { tile, layer } = layers[layers.length - 1];
    const { view } = this.timeline;
    // A part of the window is no sum of it; a live run's newest moment may be missing.
    const missing = Math.max(0, tile.a - Math.max(view.a, 0)) + Math.max(0, Math.min(view.b, view.t1) - tile.b);
    if (missing > view.span * 0.05) return null;
    const sums = this.roughly(tile, layer);
    return { exact: false, values: rows.map((row) => row.ranks.reduce((sum, rank) => sum + (sums.get(rank) || 0), 0)) };
  }

  roughly(tile, layer) {
    const { view } = this.timeline;
    const key = `${view.a} ${view.b}`;
    if (layer.sums && layer.sums.key === key) return layer.sums.values;
    const pixel = (tile.b - tile.a) / layer.cols;
    const first = Cascade.clamp(Math.floor((view.a - tile.a) / pixel), 0, layer.cols);
    const end = Cascade.clamp(Math.ceil((view.b - tile.a) / pixel), 0, layer.cols);
    const values = new Map(layer.rows.map((rank, r) => {
      let sum = 0;
      for (let p = r * layer.cols + first; p < r * layer.cols + end; p += 1) sum += layer.data[p] * layer.data[p];
      return [rank, (sum / 65025) * (layer.peers || 1) * pixel / 1e9];
    }));
    layer.sums = { key, values };
    return values;
  }
};
