/* What lies above the lanes: cursor, ghost cursor, selected stretch, flags, the notes at the cursor. */
"use strict";

Cascade.drawOverlay = (() => {
  /** Draws with everything above the scrolled lanes cut off. */
  function inSight(context, { sightTop, height, width }, draw) {
    context.save();
    context.beginPath();
    context.rect(0, sightTop, width, height - sightTop);
    context.clip();
    draw();
    context.restore();
  }

  function vertical(context, x, top, bottom, colour, dash, width = 1) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash || []);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, top);
    context.lineTo(Math.round(x) + 0.5, bottom);
    context.stroke();
    context.setLineDash([]);
  }

  /** A time in a small box on the axis, kept inside the plot; gives [left, right] of the box. */
  function flag(context, timeline, t, ground, ink) {
    const { left, plotWidth, right, overview, view } = timeline;
    const text = Cascade.format.time(t, view, Math.min(1e6, view.span / 200));
    context.font = timeline.font(11, 600);
    const width = context.measureText(text).width + 10;
    const x = Cascade.clamp(timeline.x(t) - width / 2, left, left + plotWidth + right - width - 2);
    const y = overview.height + 1;
    context.fillStyle = ground;
    context.beginPath();
    context.roundRect(x, y, width, 17, 3);
    context.fill();
    context.fillStyle = ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(text, x + 5, y + 9);
    return [x, x + width];
  }

  function stretch(context, timeline, a, b, top, colour, edge) {
    const { left, plotWidth, height } = timeline;
    const from = Math.max(left, timeline.x(a));
    const to = Math.min(left + plotWidth, timeline.x(b));
    if (to < from) return;
    context.fillStyle = colour;
    context.fillRect(from, top, to - from, height - top);
    for (const x of [timeline.x(a), timeline.x(b)]) {
      if (x >= left && x <= left + plotWidth) vertical(context, x, top, height, edge);
    }
  }

  /** How long the selected stretch is, in its middle on the axis. */
  function length(context, timeline, { a, b }) {
    const { overview, tokens, left, plotWidth } = timeline;
    const text = Cascade.format.duration(b - a);
    context.font = timeline.font(11, 600);
    const width = context.measureText(text).width;
    const x = Cascade.clamp((timeline.x(a) + timeline.x(b)) / 2, left + width / 2, left + plotWidth - width / 2);
    const y = overview.height + overview.axisHeight;
    context.fillStyle = tokens["bg-raised"];
    context.fillRect(x - width / 2 - 4, y, width + 8, 15);
    context.fillStyle = tokens.accent;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x, y + 8);
  }

  /** The notes of the lanes at the cursor: beside the title of a lane of rows, else under it. */
  function notes(context, timeline, lanes) {
    const { tokens, left, plotWidth, sightTop, height, view } = timeline;
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const lane of lanes) {
      const y = timeline.topOf(lane);
      const rows = lane instanceof Cascade.lanes.RowsLane;
      if (!lane.pinned && (y + 10 < sightTop || y > height)) continue;
      const text = lane.note(view.t);
      if (!text) continue;
      context.font = timeline.font(11);
      context.fillStyle = tokens["fg-dim"];
      if (rows) context.fillText(timeline.cut(context, text, plotWidth), left, y + 10);
      else if (lane.height() >= 40) context.fillText(timeline.cut(context, text, left - 18), 10, y + 25);
    }
  }

  function rowBox(context, timeline, rank, colour, width) {
    const { rows, rowHeight, left, plotWidth, tokens } = timeline;
    const r = rows.findIndex((row) => row.ranks.includes(rank));
    if (r < 0) return;
    for (const lane of timeline.shown) {
      if (!(lane instanceof Cascade.lanes.RowsLane) || lane.folded) continue;
      const y = timeline.topOf(lane) + lane.titleHeight + r * rowHeight;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(left - 0.5, Math.round(y) - 0.5, plotWidth + 1, rowHeight - (rowHeight >= 12 ? 1 : 0));
      context.font = timeline.font(11, 600);
      const middle = y + rowHeight / 2 + 0.5;
      // Where not every row has its label there is room beside them, and none of them is covered.
      const at = rowHeight >= 14 ? left - 8 : left - 62;
      context.fillStyle = tokens["bg-raised"];
      if (rowHeight >= 14) context.fillRect(24, middle - 8, left - 28, 16);
      context.fillStyle = colour;
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(timeline.cut(context, rows[r].label, at - 4), at, middle);
    }
  }

  function selection(context, timeline) {
    const { view, story, tokens, sightTop } = timeline;
    const found = Cascade.seek.find(story, view.sel);
    if (!found) return;
    if (["incident", "violation"].includes(found.kind) && found.b > found.a) {
      stretch(context, timeline, found.a, found.b, sightTop, tokens.css(tokens.rgb(tokens.accent), 0.06), tokens.css(tokens.rgb(tokens.accent), 0.4));
    }
    const ranks = { rank: () => found.item[0].rank, violation: () => found.item.rank, wait: () => found.item.caused_by }[found.kind];
    if (!ranks) return;
    inSight(context, timeline, () => rowBox(context, timeline, ranks(), tokens.accent, 1.5));
  }

  return function drawOverlay(timeline) {
    const { overlay, ratio, width, height, view, tokens, left, plotWidth, overview } = timeline;
    const context = overlay.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const axisTop = overview.height + overview.axisHeight - 6;
    const inside = (t) => t >= view.a && t <= view.b;
    inSight(context, timeline, () => notes(context, timeline, timeline.shown.filter((lane) => !lane.pinned)));
    notes(context, timeline, timeline.shown.filter((lane) => lane.pinned));
    selection(context, timeline);
    if (view.area) {
      stretch(context, timeline, view.area.a, view.area.b, axisTop, tokens.selection, tokens.accent);
      length(context, timeline, view.area);
    }
    for (const at of view.flags.filter(inside)) {
      vertical(context, timeline.x(at), axisTop, height, tokens.warn, [2, 3]);
      context.fillStyle = tokens.warn;
      context.beginPath();
      context.moveTo(timeline.x(at), axisTop - 6);
      context.lineTo(timeline.x(at) + 9, axisTop - 2);
      context.lineTo(timeline.x(at), axisTop + 2);
      context.fill();
    }
    if (view.hover && inside(view.hover.t)) {
      vertical(context, timeline.x(view.hover.t), axisTop, height, tokens.css(tokens.rgb(tokens.cursor), 0.45), [4, 3]);
      if (view.hover.rank !== null) {
        const colour = tokens.css(tokens.rgb(tokens.cursor), 0.45);
        inSight(context, timeline, () => rowBox(context, timeline, view.hover.rank, colour, 1));
      }
    }
    if (inside(view.t)) {
      vertical(context, timeline.x(view.t), axisTop, height, tokens.cursor, null, 1.5);
    }
    const box = inside(view.t) ? flag(context, timeline, view.t, tokens.cursor, tokens["bg-raised"]) : [0, 0];
    overview.drawTimes(context, box);
    const [low, high] = view.extent();
    const x = left + ((view.t - low) / (high - low)) * plotWidth;
    vertical(context, x, 2, overview.height - 4, tokens.cursor, null, 1.5);
  };
})();
