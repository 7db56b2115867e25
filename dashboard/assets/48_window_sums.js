/* Cascade.WindowSums: sums of waited and caused over the window: from the tile at once ("about"), exact when it
 * has settled. What the server has not read to the end is told as such: its sums are too low. */
"use strict";

Cascade.WindowSums = class WindowSums {
  static SETTLED_MS = 300;
  static AGAIN_MS = 2000; // a live run has something new with each pulse

  constructor(timeline) {
    Object.assign(this, { timeline, exact: null, timer: 0, abort: null, failed: "" });
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
    if (this.planned || this.abort || this.isDone()) return;
    this.plan(Math.max(WindowSums.SETTLED_MS, (this.asked || 0) + WindowSums.AGAIN_MS - Date.now()));
  }

  /** Whether what is known is the last that there is to know of this window. */
  isDone() {
    return Boolean(this.exact) && this.exact.key === this.key() && !this.exact.reading;
  }

  /** What failed is asked for again now. */
  retry() {
    this.plan(0);
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
    if (this.isDone()) return;
    if (this.abort) this.abort.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.asked = Date.now();
    try {
      const answer = await source.window(Math.max(0, view.a), Math.max(1, view.b), { signal: abort.signal, group: view.group });
      this.exact = {
        key, place, t1, about: Boolean(answer.about), reading: answer.building || null, source: answer.source,
        upto_ns: answer.waits_upto_ns,
        by_rank: new Map(answer.by_rank.map((row) => [row.rank, row])),
      };
      this.failed = "";
      this.timeline.touch();
      if (this.exact.reading) this.plan(WindowSums.AGAIN_MS); // pulses may end before what is read does
    } catch (error) {
      if (error.name === "AbortError" || abort.signal.aborted) return;
      if (!(error instanceof Cascade.Problem)) console.error(error);
      this.failed = error.message;
      this.timeline.touch();
      this.plan(WindowSums.AGAIN_MS);
    } finally {
      if (this.abort === abort) this.abort = null;
    }
  }

  /** {exact, values, reading, provisional} of a lane, or null before anything is known. values: seconds per row on
   * screen. reading: what the server has yet to read of them, {what, share}, or null. */
  of(lane) {
    const { rows, view } = this.timeline;
    const pending = Cascade.unfinished.reading(view);
    if (this.exact && this.exact.place === this.place()) {
      // What came since the answer lies behind a window of the past.
      const isNow = this.exact.key === this.key() || view.b <= this.exact.t1;
      const name = `${lane}_s`;
      const value = (rank) => (this.exact.by_rank.get(rank) || {})[name] || 0;
      const reading = this.exact.reading || pending || this.lag(this.exact.source, this.exact.upto_ns);
      return {
        exact: isNow && !this.exact.about && !reading, reading, provisional: this.exact.source === "provisional",
        values: rows.map((row) => row.ranks.reduce((sum, rank) => sum + value(rank), 0)),
      };
    }
    const layers = this.timeline.tiles.layersFor(lane);
    if (!layers.length) return null;
    const { tile, layer } = layers[layers.length - 1];
    // A part of the window is no sum of it; a live run's newest moment may be missing.
    const missing = Math.max(0, tile.a - Math.max(view.a, 0)) + Math.max(0, Math.min(view.b, view.t1) - tile.b);
    if (missing > view.span * 0.05) return null;
    const sums = this.roughly(tile, layer);
    return {
      exact: false, reading: tile.building || pending || this.lag(tile.source, tile.upto_ns), provisional: tile.source === "provisional",
      values: rows.map((row) => row.ranks.reduce((sum, rank) => sum + (sums.get(rank) || 0), 0)),
    };
  }

  /** What is missing where the rows of the window were not read to its end; null where they were. */
  lag(source, upto_ns) {
    const { view, columns } = this.timeline;
    if (source !== "provisional" || !Number.isFinite(upto_ns)) return null;
    const isBehind = upto_ns < Math.min(view.b, view.t1) - view.span / columns;
    return isBehind ? { share: 0, what: "reading the newest rows" } : null;
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
