/* Cascade.HeldTiles: the busy lanes of a report, kept in columns of one length over the whole run, as tiles
 * of any window. Wider pixels are means over columns; narrower ones repeat the column they lie in. */
"use strict";

Cascade.HeldTiles = class HeldTiles {
  /** head: of the tile of the whole run. body: its layers. */
  constructor(head, body) {
    Object.assign(this, { head, a: head.a, b: head.b, cols: head.w, column_ns: (head.b - head.a) / head.w });
    this.layers = new Map(head.layers.map((layer) => [layer.lane, {
      ...layer, data: body.subarray(layer.offset, layer.offset + layer.rows.length * layer.cols),
    }]));
  }

  /** Where column i begins: whole ns, as the server divides (dashboard/tiles/encode.py). */
  edge(i) {
    return this.a + Math.floor((this.b - this.a) * (i / this.cols) + 1e-6);
  }

  /** The tile of [a, b] in w pixels, as the server gives it. ranks: null for all. */
  tile(a, b, w, lanes, ranks) {
    const layers = {};
    for (const lane of lanes) {
      const layer = this.layers.get(lane);
      if (!layer) continue;
      const isWhole = a === this.a && b === this.b && w === this.cols;
      if (layer.code === "percent") layers[lane] = isWhole ? layer : this.percents(layer, a, b, w);
      else layers[lane] = this.shares(layer, a, b, w, ranks || layer.rows, isWhole);
    }
    const { version, upto_ns, source } = this.head;
    return { a, b, w, version, upto_ns, source, building: null, layers };
  }

  /** Running sums of shares, a row at a time, made when first asked for. */
  sums(layer) {
    if (layer.running) return layer.running;
    const { cols, data } = layer;
    const running = new Float64Array(layer.rows.length * (cols + 1));
    for (let r = 0; r < layer.rows.length; r += 1) {
      let sum = 0;
      for (let c = 0; c < cols; c += 1) {
        sum += (data[r * cols + c] / 255) ** 2;
        running[r * (cols + 1) + c + 1] = sum;
      }
    }
    layer.running = running;
    return running;
  }

  /** Sum of one row up to a place between columns. */
  static upTo(running, from, cols, place) {
    const at = Cascade.clamp(place, 0, cols);
    const whole = Math.min(Math.floor(at), cols - 1);
    const below = running[from + whole];
    return below + (running[from + whole + 1] - below) * (at - whole);
  }

  shares(layer, a, b, w, ranks, isWhole) {
    const { cols } = layer;
    const place = new Map(layer.rows.map((rank, i) => [rank, i]));
    const data = new Uint8Array(ranks.length * w);
    const running = isWhole ? null : this.sums(layer);
    const step = (b - a) / w / this.column_ns;
    const first = (a - this.a) / this.column_ns;
    ranks.forEach((rank, r) => {
      const row = place.get(rank);
      if (row === undefined) return;
      if (isWhole) {
        data.set(layer.data.subarray(row * cols, (row + 1) * cols), r * w);
        return;
      }
      let before = HeldTiles.upTo(running, row * (cols + 1), cols, first);
      for (let p = 0; p < w; p += 1) {
        const after = HeldTiles.upTo(running, row * (cols + 1), cols, first + (p + 1) * step);
        const share = Math.min(1, (after - before) / step);
        // Any wait is to be seen; what is only the rounding of sums is none.
        if (share > 1e-9) data[r * w + p] = Cascade.clamp(Math.ceil(255 * Math.sqrt(share) - 1e-3), 1, 255);
        before = after;
      }
    });
    return { rows: ranks, cols: w, code: layer.code, peers: layer.peers || 1, data };
  }

  /** Of several columns: the median of medians, p10 and p90 as means by samples, the least, the most. */
  percents(layer, a, b, w) {
    const NONE = 255;
    const { cols, data } = layer;
    const out = new Uint8Array(layer.rows.length * w).fill(NONE);
    const row = Object.fromEntries(layer.rows.map((name, i) => [name, i]));
    const get = (name, c) => data[row[name] * cols + c];
    for (let p = 0; p < w; p += 1) {
      const from = (a + ((b - a) * p) / w - this.a) / this.column_ns;
      const to = (a + ((b - a) * (p + 1)) / w - this.a) / this.column_ns;
      const found = [];
      for (let c = Math.max(0, Math.floor(from)); c < Math.min(cols, Math.max(Math.ceil(to), Math.floor(from) + 1)); c += 1) {
        if (get("median", c) !== NONE) found.push(c);
      }
      const set = (name, value) => { out[row[name] * w + p] = value; };
      const num = found.reduce((sum, c) => sum + get("num", c), 0);
      set("num", Math.min(254, num));
      if (!found.length) continue;
      const mean = (name) => Math.round(found.reduce((sum, c) => sum + get(name, c) * get("num", c), 0) / Math.max(1, num));
      const medians = found.map((c) => get("median", c)).sort((x, y) => x - y);
      set("median", medians[medians.length >> 1]);
      set("p10", mean("p10"));
      set("p90", mean("p90"));
      set("min", Math.min(...found.map((c) => get("min", c))));
      set("max", Math.max(...found.map((c) => get("max", c))));
    }
    return { rows: layer.rows, cols: w, code: layer.code, data: out };
  }

  /** sums: {num, waited, caused}, microseconds of each rank in equal stretches of the run. */
  withSums(sums) {
    this.totals = sums;
    return this;
  }

  /** Seconds of a lane inside [a, b] by rank: exact where both are bounds of stretches; inside a stretch its
   * sum is spread as the lane's columns are. */
  seconds(lane, a, b) {
    const layer = this.layers.get(lane);
    const running = this.sums(layer);
    const { num } = this.totals;
    const micros = this.totals[lane];
    const length = (this.b - this.a) / num;
    const upTo = (r, t) => {
      const place = Cascade.clamp((t - this.a) / length, 0, num);
      const whole = Math.min(Math.floor(place), num - 1);
      let sum = 0;
      for (let n = 0; n < whole; n += 1) sum += micros[r * num + n];
      const column = (at) => HeldTiles.upTo(running, r * (this.cols + 1), this.cols, (at / num) * this.cols);
      const of = column(whole + 1) - column(whole);
      return sum + micros[r * num + whole] * (of > 0 ? (column(place) - column(whole)) / of : place - whole);
    };
    return new Map(layer.rows.map((rank, r) => [rank, Math.max(0, (upTo(r, b) - upTo(r, a)) / 1e6)]));
  }
};
