/* Lanes "gpu" and "cpu": p10-p90 as a band, the median as a line, the minimum as a thin line, over all
 * ranks. A kind that was not measured says so and why; it is never drawn as 0%. */
"use strict";

Cascade.lanes.BusyLane = class BusyLane extends Cascade.lanes.Lane {
  /** A sample is of the half second before it (the agents' period, and a little), so it is drawn there. */
  static REACH_NS = 6e8;

  /** For each column of a layer the column whose sample is of its time; -1 where nothing was measured. */
  static sampleOf(tile, layer) {
    if (!layer.sampleOf) {
      const median = layer.rows.indexOf("median") * layer.cols;
      const reach = (BusyLane.REACH_NS * layer.cols) / (tile.b - tile.a);
      layer.sampleOf = new Int32Array(layer.cols);
      let next = Infinity;
      for (let p = layer.cols - 1; p >= 0; p -= 1) {
        if (layer.data[median + p] !== 255) next = p;
        layer.sampleOf[p] = next - p <= reach ? next : -1;
      }
    }
    return layer.sampleOf;
  }

  constructor(timeline, name, title) {
    super(timeline, name, title);
    this.tip = name === "cpu" ? "process CPU busy" : "GPU utilisation";
  }

  get measured() {
    const said = (this.timeline.story.measured || {})[this.name];
    return said || { state: "measured", why: "" };
  }

  get isMeasured() {
    return this.measured.state !== "not_measured";
  }

  height() {
    return this.isMeasured ? 50 : 28;
  }

  draw(context, y) {
    const { timeline } = this;
    const height = this.height() - 6;
    this.drawTitle(context, y);
    this.ground(context, y, height);
    if (!this.isMeasured) {
      this.words(context, y, height, `not measured: ${this.measured.why || "no reason was given"}`);
      return;
    }
    this.drawGrid(context, y, height);
    const layers = timeline.tiles.layersFor(this.name);
    for (const { tile, layer } of layers) this.drawLayer(context, tile, layer, y, height);
    this.drawUnread(context, y, height, layers);
  }

  /** Dots where no tile is yet, and why: nothing drawn would be "no sample". */
  drawUnread(context, y, height, layers) {
    const { timeline } = this;
    context.fillStyle = timeline.tokens.loading;
    for (const [from, to] of this.unread(layers)) {
      const width = timeline.x(to) - timeline.x(from);
      if (width >= 1) context.fillRect(timeline.x(from), y, width, height);
    }
    if (!layers.length) this.words(context, y, height, this.waitingFor());
  }

  drawGrid(context, y, height) {
    const { left, plotWidth, tokens } = this.timeline;
    context.fillStyle = tokens.line;
    for (const share of [0.5]) context.fillRect(left, Math.round(y + height * (1 - share)), plotWidth, 1);
    context.font = this.timeline.font(10);
    context.fillStyle = tokens["fg-dim"];
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText("100%", left + plotWidth + 6, y + 6);
    context.fillText("0%", left + plotWidth + 6, y + height - 5);
  }

  drawLayer(context, tile, layer, y, height) {
    const { timeline } = this;
    const { left, plotWidth, tokens } = timeline;
    const from = Math.max(left, timeline.x(tile.a));
    const to = Math.min(left + plotWidth, timeline.x(tile.b));
    if (to <= from) return;
    context.save();
    context.beginPath();
    context.rect(from, y, to - from, height);
    context.clip();
    this.ground(context, y, height);
    this.drawGrid(context, y, height);
    const row = (name) => layer.rows.indexOf(name) * layer.cols;
    const colour = tokens.rgb(tokens[this.name]);
    const at = (p) => timeline.x(tile.a + ((p + 0.5) * (tile.b - tile.a)) / layer.cols);
    const level = (value) => y + 1 + (height - 2) * (1 - value / 100);
    const [first, end] = this.columns(tile, layer);
    const sampleOf = BusyLane.sampleOf(tile, layer);
    const runs = this.measuredRuns(sampleOf, first, end);
    const value = (name) => (p) => layer.data[row(name) + sampleOf[p]];
    const [p10, p90] = [value("p10"), value("p90")];
    const wide = Math.max(1, (timeline.x(tile.b) - timeline.x(tile.a)) / layer.cols);
    for (const [begin, stop] of runs) {
      context.fillStyle = tokens.css(colour, 0.26);
      context.beginPath();
      context.moveTo(at(begin) - wide / 2, level(p90(begin)));
      for (let p = begin; p < stop; p += 1) context.lineTo(at(p), level(p90(p)));
      context.lineTo(at(stop - 1) + wide / 2, level(p90(stop - 1)));
      context.lineTo(at(stop - 1) + wide / 2, level(p10(stop - 1)));
      for (let p = stop - 1; p >= begin; p -= 1) context.lineTo(at(p), level(p10(p)));
      context.lineTo(at(begin) - wide / 2, level(p10(begin)));
      context.fill();
    }
    this.drawLine(context, runs, value("min"), at, level, wide, tokens.css(colour, 0.75), 0.8);
    this.drawLine(context, runs, value("median"), at, level, wide, tokens.css(colour), 1.6);
    context.restore();
  }

  drawLine(context, runs, value, at, level, wide, colour, width) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.beginPath();
    for (const [begin, stop] of runs) {
      context.moveTo(at(begin) - wide / 2, level(value(begin)));
      for (let p = begin; p < stop; p += 1) context.lineTo(at(p), level(value(p)));
      context.lineTo(at(stop - 1) + wide / 2, level(value(stop - 1)));
    }
    context.stroke();
  }

  /** Stretches of columns that were measured. */
  measuredRuns(sampleOf, first, end) {
    const runs = [];
    let begin = -1;
    for (let p = first; p <= end; p += 1) {
      const none = p === end || sampleOf[p] < 0;
      if (!none && begin < 0) begin = p;
      if (none && begin >= 0) {
        runs.push([begin, p]);
        begin = -1;
      }
    }
    return runs;
  }

  /** The columns of a tile that are in the window, one more on each side. */
  columns(tile, layer) {
    const { view } = this.timeline;
    const scale = layer.cols / (tile.b - tile.a);
    return [
      Cascade.clamp(Math.floor((view.a - tile.a) * scale) - 1, 0, layer.cols),
      Cascade.clamp(Math.ceil((view.b - tile.a) * scale) + 1, 0, layer.cols),
    ];
  }

  /** The numbers of the pixel at t, or null where nothing was sampled. */
  at(t) {
    const found = this.timeline.tiles.sharpest(this.name, t);
    if (!found) return null;
    const { tile, layer } = found;
    const column = BusyLane.sampleOf(tile, layer)[found.column];
    if (column < 0) return null;
    const value = (name) => layer.data[layer.rows.indexOf(name) * layer.cols + column];
    return { median: value("median"), p10: value("p10"), p90: value("p90"), min: value("min"), num: value("num") };
  }

  /** Several threads of a process can be busy at once; the lane ends at 100%. */
  percent(value) {
    return this.name === "cpu" && value >= 100 ? "100% or more" : `${value}%`;
  }

  note(t) {
    if (!this.isMeasured) return "";
    const now = this.at(t);
    return now ? `median ${this.percent(now.median)}, lowest ${this.percent(now.min)}` : "";
  }

  reading(t) {
    if (!this.isMeasured) return { lines: [`not measured: ${this.measured.why}`], rank: null, sel: null };
    const now = this.at(t);
    const samples = now && (now.num >= 254 ? "254 or more samples" : Cascade.plural(now.num, "sample"));
    const isHere = this.timeline.tiles.sharpest(this.name, t);
    const none = isHere && !isHere.tile.building ? "no sample here" : this.waitingFor();
    const lines = now
      ? [`median ${this.percent(now.median)}, lowest ${this.percent(now.min)}`, `80% of samples within ${this.percent(now.p10)} to ${this.percent(now.p90)} (${samples})`]
      : [none];
    const coarse = this.timeline.coarse();
    if (coarse) lines.push(coarse);
    return { lines, rank: null, sel: null };
  }
};
