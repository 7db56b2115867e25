/* Lane "regime": each rank's regime. Body = the regime it was in longest within the pixel; top edge =
 * the worst it was in at all, so that 20 ms show in a view of hours. */
"use strict";

Cascade.lanes.RegimeLane = class RegimeLane extends Cascade.lanes.RowsLane {
  constructor(timeline) {
    super(timeline, "regime", "Regime by rank");
    this.tip = "regime";
  }

  drawRows(context, top, first, end) {
    const { timeline } = this;
    const { rowHeight, view } = timeline;
    const bodies = timeline.regimes.rowBodies(first, end);
    this.drawStretched(context, this.image(bodies), bodies.a, bodies.b, top + first * rowHeight, (end - first) * rowHeight);
    if (rowHeight >= 14 && bodies.a === view.a && bodies.b === view.b) this.drawLetters(context, bodies, top + first * rowHeight);
  }

  /** All rows as one picture, as high as on screen; made anew only when something in it changed. */
  image(bodies) {
    const { tokens, view } = this.timeline;
    const { kept } = this;
    if (kept && kept.bodies === bodies && kept.tokens === tokens && kept.filter === view.filter) return kept.picture.canvas;
    const began = performance.now();
    const picture = Cascade.lanes.rowsImage(bodies, this.timeline, kept && kept.picture);
    this.timeline.regimes.alsoCost("rows", performance.now() - began);
    this.kept = { bodies, tokens, filter: view.filter, picture };
    return picture.canvas;
  }

  drawLetters(context, bodies, top) {
    const { timeline } = this;
    const { left, plotWidth, rowHeight, tokens, view } = timeline;
    const scale = plotWidth / bodies.w;
    context.font = timeline.font(10, 600);
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (let r = 0; r < bodies.num_rows; r += 1) {
      Cascade.lanes.Lane.runs(bodies.body, r * bodies.w, bodies.w, (regime, from, to) => {
        if (regime === 255 || (to - from) * scale < 24) return;
        const name = Cascade.REGIMES[regime];
        if (view.filter && view.filter !== name) return;
        const x = left + from * scale + 6;
        const y = top + r * rowHeight + rowHeight / 2;
        if (regime === 2) { // the letter stands on plain ground, not on the hatching
          context.fillStyle = tokens.regime_css[2];
          context.fillRect(x - 3, y - 6, 12, 12);
        }
        context.fillStyle = tokens.on[regime];
        context.fillText(name[0], x, y + 0.5);
      });
    }
  }

  /** "epoch 5, CAUSAL, missing {2}, cohorts {0, 1} {3}". */
  note(t) {
    const { lookup, view } = this.timeline;
    const walk = lookup.walkAt(view.group, t);
    if (!walk) return this.firstNote(t);
    const parts = [`epoch ${walk.epoch}`];
    if (walk.to) parts.push(walk.to);
    if (walk.missing.length) parts.push(`missing ${Cascade.rankSet(walk.missing)}`);
    if (walk.cohorts.length > 1) parts.push(`cohorts ${walk.cohorts.map(Cascade.rankSet).join(" ")}`);
    return parts.join(", ");
  }

  /** Before the first walk: what the ranks themselves say. */
  firstNote(t) {
    const { lookup, view, story } = this.timeline;
    const row = story.ranks.map((rank) => lookup.intervalAt(view.group, rank, t)).find((i) => i >= 0);
    if (row === undefined) return "";
    const { epoch, regime } = lookup.regimes;
    const missing = story.missing.length ? `, missing ${Cascade.rankSet(story.missing)}` : "";
    return `epoch ${epoch[row]}, ${Cascade.REGIMES[regime[row]]}${missing}`;
  }

  reading(t, y) {
    const { timeline } = this;
    const r = this.rowAt(y);
    if (r < 0) return { lines: [this.note(t)].filter(Boolean), rank: null, sel: null };
    const row = timeline.rows[r];
    const pixels = timeline.regimes.onePixel(row.ranks, t);
    const base = `these ${Cascade.format.duration(timeline.view.span / timeline.columns)}`;
    const lines = [];
    if (pixels.body[0] === 255) {
      lines.push(...(row.ranks.length === 1 ? timeline.lookup.absences(row.ranks[0], t) : ["no row"]));
    } else {
      for (let regime = 0; regime < 3; regime += 1) {
        const share = pixels.share[regime][0];
        if (share > 0) lines.push(share === 1 ? Cascade.REGIMES[regime] : `${Cascade.REGIMES[regime]} ${Cascade.format.percent(share, base)}`);
      }
      if (pixels.covered[0] < 0.999) lines.push(`no row ${Cascade.format.percent(1 - pixels.covered[0], base)}`);
    }
    const single = row.ranks.length === 1;
    return { lines, row: row.label, rank: single ? row.ranks[0] : null, sel: single ? `rank:${row.ranks[0]}` : null };
  }
};
