/* The head of the timeline: overview of the whole run with the window as a brush, and the time axis. */
"use strict";

Cascade.lanes.Overview = class Overview {
  constructor(timeline) {
    this.timeline = timeline;
    this.height = 30;
    this.axisHeight = 26;
  }

  x(t) {
    const [low, high] = this.timeline.view.extent();
    return this.timeline.left + ((t - low) / (high - low)) * this.timeline.plotWidth;
  }

  time(x) {
    const [low, high] = this.timeline.view.extent();
    return low + ((x - this.timeline.left) / this.timeline.plotWidth) * (high - low);
  }

  /** The brush on screen: [left, right], wide enough to be taken hold of. */
  brush() {
    const { view, left, plotWidth } = this.timeline;
    const middle = (this.x(view.a) + this.x(view.b)) / 2;
    const half = Math.max(3, (this.x(view.b) - this.x(view.a)) / 2);
    return [Math.max(left, middle - half), Math.min(left + plotWidth, middle + half)];
  }

  draw(context) {
    const { timeline } = this;
    const { tokens, left, plotWidth, story, view } = timeline;
    const top = 4;
    const height = this.height - 10;
    this.label(context, `Whole run, ${Cascade.format.duration(view.t1)}`, top + height / 2);
    context.fillStyle = tokens.none;
    context.fillRect(left, top, plotWidth, height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image().canvas, left, top, plotWidth, height);
    for (const mark of story.marks) {
      if (mark.severity !== "error" && mark.kind !== "violation") continue;
      context.fillStyle = tokens["bg-raised"];
      context.fillRect(this.x(mark.at_ns) - 2, top, 4, height / 2 + 1);
      context.fillStyle = tokens.bad;
      context.fillRect(this.x(mark.at_ns) - 1, top, 2, height / 2);
    }
    this.drawBrush(context, top, height);
  }

  label(context, text, y) {
    const { timeline } = this;
    if (!timeline.drawsGutter) return;
    context.font = timeline.font(11);
    context.fillStyle = timeline.tokens["fg-dim"];
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(timeline.cut(context, text, timeline.left - 18), 10, y);
  }

  image() {
    const { timeline } = this;
    const { story, tokens, view, plotWidth, ratio } = timeline;
    const key = [view.t1, view.group, plotWidth, ratio, view.filter];
    const kept = this.kept;
    if (kept && kept.story === story && kept.tokens === tokens && kept.key.every((x, i) => x === key[i])) return kept.image;
    const w = Math.max(1, Math.round(plotWidth * ratio));
    const pixels = Cascade.regimePixels(timeline.lookup.regimes, [story.ranks], view.group, ...view.extent(), w);
    const image = Cascade.lanes.shareImage(pixels, Math.round((this.height - 10) * ratio), tokens, view.filter, kept && kept.image);
    this.kept = { story, tokens, key, image };
    return image;
  }

  drawBrush(context, top, height) {
    const { left, plotWidth, tokens } = this.timeline;
    const [from, to] = this.brush();
    context.fillStyle = tokens.css(tokens.rgb(tokens["bg-raised"]), 0.62);
    context.fillRect(left, top, from - left, height);
    context.fillRect(to, top, left + plotWidth - to, height);
    context.strokeStyle = tokens.accent;
    context.lineWidth = 1.5;
    context.strokeRect(from, top - 1, to - from, height + 2);
    context.fillStyle = tokens.accent;
    for (const x of [from, to]) context.fillRect(x - 2, top + height / 2 - 5, 4, 10);
  }

  drawAxis(context, y) {
    const { timeline } = this;
    const { view, left, plotWidth, tokens } = timeline;
    const ticks = Cascade.axis.ticks(view.a, view.b, plotWidth, 110, Cascade.axis.offset(view));
    const names = { start: "Since job start", utc: "UTC", local: "Local time" };
    this.label(context, names[view.clockMode], y + this.axisHeight / 2);
    context.fillStyle = tokens.line;
    context.fillRect(left, y + this.axisHeight - 4, plotWidth, 1);
    for (const at of ticks.at) {
      const x = timeline.x(at);
      context.fillStyle = tokens.line;
      for (let i = 1; i < 5; i += 1) {
        const minor = timeline.x(at + ticks.minor * i);
        if (minor < left + plotWidth) context.fillRect(Math.round(minor), y + this.axisHeight - 6, 1, 3);
      }
      context.fillStyle = tokens["line-strong"];
      context.fillRect(Math.round(x), y + this.axisHeight - 9, 1, 6);
    }
    this.ticks = ticks;
  }

  /** The times at the ticks, but for those that the box at the cursor, [from, to], would cover. */
  drawTimes(context, [from, to]) {
    const { timeline } = this;
    const { view, left, plotWidth, right, tokens } = timeline;
    if (!this.ticks) return;
    context.font = timeline.font(11);
    context.fillStyle = tokens["fg-dim"];
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const at of this.ticks.at) {
      const text = Cascade.axis.label(at, view, this.ticks.step);
      const half = context.measureText(text).width / 2;
      const x = Cascade.clamp(timeline.x(at), left + half, left + plotWidth + right - half - 2);
      if (x + half + 4 < from || x - half - 4 > to) context.fillText(text, x, this.height + 9);
    }
  }
};
