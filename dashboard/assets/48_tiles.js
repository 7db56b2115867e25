/* Tiles: arrays from the source behind the busy lanes. What is at hand is drawn at once, stretched; the
 * sharp one replaces it. One question in flight, the latest wins; neighbours are fetched when idle. */
"use strict";

Cascade.Tiles = class Tiles {
  static KEPT = 40;
  static KEPT_BYTES = 16e6;
  static IDLE_MS = 400; // the server draws one window at a time, and neighbours are not to be in the way

  /** changed(): called when there is something new to draw. */
  constructor(source, changed) {
    Object.assign(this, { source, changed, kept: [], asking: null, wanted: null, version: "", failed: false, idle: 0, stopped: false });
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.idle);
    if (this.asking) this.asking.abort.abort();
  }

  /** What the timeline shows now. version: the pulse's tiles_version; other than before = ask anew. */
  want(a, b, w, lanes, ranks, version) {
    const t0 = this.source.t0 || "";
    if (t0 !== this.t0) this.kept = []; // they count from another moment
    this.t0 = t0;
    const wanted = { a: Math.round(a), b: Math.round(b), w, lanes, ranks, version };
    wanted.key = JSON.stringify([wanted.a, wanted.b, w, lanes, ranks, version, t0]);
    if (this.wanted && this.wanted.key === wanted.key) return;
    this.wanted = wanted;
    this.seen = { a, b };
    clearTimeout(this.idle);
    if (this.asking && this.asking.ahead) this.asking.abort.abort(); // for a neighbour that is none any more
    this.next();
  }

  sharp() {
    return this.kept.find((tile) => tile.key === this.wanted.key);
  }

  async next() {
    if (this.stopped || this.asking || !this.wanted || !this.wanted.lanes.length) return;
    if (this.sharp()) {
      this.idle = setTimeout(() => this.prefetch(), Tiles.IDLE_MS);
      return;
    }
    await this.ask(this.wanted);
    if (this.stopped) return;
    if (this.failed) this.idle = setTimeout(() => this.next(), 1000);
    else this.next();
  }

  /** ahead: nobody waits for it. */
  async ask({ a, b, w, lanes, ranks, version, key }, ahead = false) {
    const { t0 } = this;
    const asking = { key, ahead, abort: new AbortController() };
    this.asking = asking;
    try {
      const tile = await this.source.tile(a, b, w, lanes, ranks, { signal: asking.abort.signal });
      if (this.stopped) return;
      this.failed = false;
      if (t0 !== this.t0) return;
      this.keep({ ...tile, key, asked: version });
      if (!ahead || !this.sharp()) this.changed();
    } catch (error) {
      if (this.stopped || asking.abort.signal.aborted) return;
      this.failed = true;
      if (!(error instanceof Cascade.Problem)) console.error(error);
      this.changed();
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
    if (this.stopped || this.asking || !this.wanted || document.hidden) return;
    const { a, b, w, lanes, ranks, version } = this.wanted;
    const span = b - a;
    for (const [from, to] of [[b, b + span], [a - span, a], [a - span / 2, b + span / 2]]) {
      const near = { a: Math.round(from), b: Math.round(to), w, lanes, ranks, version };
      near.key = JSON.stringify([near.a, near.b, w, lanes, ranks, version, this.t0]);
      if (near.a < -span || this.kept.some((tile) => tile.key === near.key)) continue;
      await this.ask(near, true);
      if (this.failed || this.stopped) return;
      if (!this.sharp()) {
        this.next();
        return;
      }
    }
  }

  /** Tiles with a lane's layer that touch the window, coarse first, so that the sharpest is on top. */
  layersFor(lane) {
    if (!this.wanted) return [];
    const { a, b } = this.wanted;
    const hits = this.kept.filter((tile) => tile.layers[lane] && tile.b > a && tile.a < b);
    const sharp = hits.find((tile) => tile.key === this.wanted.key);
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
