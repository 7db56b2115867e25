/* Lanes: what each is, and what all of them do the same way. The timeline asks a lane for its height,
 * to draw itself, and for what lies under the mouse.
 *
 * A lane of rows (one per rank or host) has a title line and draws only the rows in sight.
 */
"use strict";

Cascade.lanes.Lane = class Lane {
  /** timeline: geometry, view, story, tokens. name: as in the permalink. */
  constructor(timeline, name, title) {
    Object.assign(this, { timeline, name, title, top: 0, pinned: false, foldable: false });
  }

  get folded() {
    const { lanes } = this.timeline.view;
    return this.foldable && Boolean(lanes) && lanes.folded.includes(this.name);
  }

  height() {
    return 40;
  }

  /** draw(context, y): y is the lane's top in canvas pixels; the plot runs from timeline.left. */
  draw() {}

  /** What the lane says at a moment, shown beside its title. */
  note() {
    return "";
  }

  /** {lines: [text], rank, sel} under the mouse at time t, y within the lane. */
  reading() {
    return { lines: [], rank: null, sel: null };
  }

  drawTitle(context, y) {
    const { timeline } = this;
    if (!timeline.drawsGutter) return;
    const { tokens, left } = timeline;
    context.font = timeline.font(12, 600);
    context.fillStyle = tokens.fg;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const indent = this.foldable ? 22 : 10;
    if (this.foldable) this.drawChevron(context, 12, y + 10);
    context.fillText(timeline.cut(context, this.title, left - indent - 8), indent, y + 10);
  }

  drawChevron(context, x, y) {
    context.strokeStyle = this.timeline.tokens["fg-dim"];
    context.lineWidth = 1.5;
    context.beginPath();
    if (this.folded) {
      context.moveTo(x - 2, y - 4);
      context.lineTo(x + 2, y);
      context.lineTo(x - 2, y + 4);
    } else {
      context.moveTo(x - 4, y - 2);
      context.lineTo(x, y + 2);
      context.lineTo(x + 4, y - 2);
    }
    context.stroke();
  }

  /** The empty plot of a lane. */
  ground(context, y, height, colour) {
    const { left, plotWidth, tokens } = this.timeline;
    context.fillStyle = colour || tokens["bg-sunken"];
    context.fillRect(left, y, plotWidth, height);
  }

  /** Stretches [a, b] of the window whose rows are not here, or were not read yet. layers: those at hand. */
  unread(layers) {
    const { view, tiles } = this.timeline;
    const stretches = tiles.uncovered(this.name, view.a, view.b);
    // What was judged was read to its end.
    if (layers.length && layers.every(({ tile }) => tile.source === "provisional" && Number.isFinite(tile.upto_ns))) {
      stretches.push([Math.max(view.a, ...layers.map(({ tile }) => tile.upto_ns)), Math.min(view.b, view.t1)]);
    }
    return stretches;
  }

  /** What stands where nothing can be drawn yet. */
  waitingFor() {
    const { tiles, view } = this.timeline;
    if (tiles.failed) return `could not be read: ${tiles.failed}; trying again`;
    const now = Cascade.unfinished.reading(view);
    return now ? `loading… (${Cascade.unfinished.progress(now)})` : "loading…";
  }

  /** Words in the middle of a lane that has nothing to draw. */
  words(context, y, height, text) {
    const { timeline } = this;
    context.font = timeline.font(12);
    context.fillStyle = timeline.tokens["fg-dim"];
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(timeline.cut(context, text, timeline.plotWidth - 20), timeline.left + 10, y + height / 2);
  }

  /** Draws a picture where its stretch [a, b] of time is now, within the plot. */
  drawStretched(context, image, a, b, y, height) {
    const { timeline } = this;
    const { left, plotWidth, view } = timeline;
    context.imageSmoothingEnabled = false;
    if (a === view.a && b === view.b) {
      context.drawImage(image, left, y, plotWidth, height);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(left, y, plotWidth, height);
    context.clip();
    context.drawImage(image, timeline.x(a), y, timeline.x(b) - timeline.x(a), height);
    context.restore();
  }

  /** Runs of equal values of one row of a pixel array: each(value, first, end). */
  static runs(values, from, width, each) {
    let start = 0;
    for (let p = 1; p <= width; p += 1) {
      if (p < width && values[from + p] === values[from + start]) continue;
      each(values[from + start], start, p);
      start = p;
    }
  }
};

Cascade.lanes.RowsLane = class RowsLane extends Cascade.lanes.Lane {
  constructor(timeline, name, title) {
    super(timeline, name, title);
    this.foldable = true;
    this.titleHeight = 20;
  }

  height() {
    const { rows, rowHeight } = this.timeline;
    return this.folded ? this.titleHeight + 2 : this.titleHeight + rows.length * rowHeight + 6;
  }

  draw(context, y) {
    this.drawTitle(context, y);
    if (this.folded) return;
    const [first, end] = this.inSight(y);
    if (end <= first) return;
    this.drawRows(context, y + this.titleHeight, first, end);
    if (this.timeline.drawsGutter) this.drawLabels(context, y + this.titleHeight, first, end);
  }

  /** [first, end) of the rows inside the visible part of the canvas. */
  inSight(y) {
    const { rows, rowHeight, sightTop, height } = this.timeline;
    const top = y + this.titleHeight;
    return [
      Cascade.clamp(Math.floor((sightTop - top) / rowHeight), 0, rows.length),
      Cascade.clamp(Math.ceil((height - top) / rowHeight), 0, rows.length),
    ];
  }

  /** Row labels, as many as there is room for. */
  drawLabels(context, top, first, end) {
    const { timeline } = this;
    const { rows, rowHeight, tokens, left } = timeline;
    const every = [1, 2, 4, 8, 16, 32, 64, 128].find((n) => n * rowHeight >= 14) || 256;
    context.font = timeline.font(11);
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = tokens["fg-dim"];
    for (let r = Math.ceil(first / every) * every; r < end; r += every) {
      const text = timeline.cut(context, rows[r].label, left - 18);
      context.fillText(text, left - 8, top + r * rowHeight + rowHeight / 2 + 0.5);
    }
  }

  /** Index of the row at y within the lane, or -1. */
  rowAt(y) {
    const { rows, rowHeight } = this.timeline;
    if (this.folded || y < this.titleHeight) return -1;
    const row = Math.floor((y - this.titleHeight) / rowHeight);
    return row < rows.length ? row : -1;
  }

  /** Thin lines of the page's colour between rows, so that equal neighbours stay two rows. */
  drawGaps(context, top, first, end) {
    const { rowHeight, left, plotWidth, tokens } = this.timeline;
    if (rowHeight < 4) return;
    const gap = rowHeight >= 12 ? 2 : 1;
    context.fillStyle = tokens.css(tokens.rgb(tokens["bg-raised"]), rowHeight >= 12 ? 1 : 0.6);
    for (let r = first; r < end; r += 1) {
      context.fillRect(left, top + (r + 1) * rowHeight - gap, plotWidth, gap);
    }
  }
};
