/* Lane "fleet": which share of the ranks was in which regime; and the same for the overview strip. */
"use strict";

/** A picture of one row of regime shares: worst at the bottom, time without rows left open at the top.
 * Any regime that was there at all gets at least one pixel. */
Cascade.lanes.shareImage = (pixels, height, tokens, filter, old) => {
  const { w, share, covered, body } = pixels;
  const picture = Cascade.lanes.Picture.like(old, w, height);
  const words = picture.words.fill(0);
  const colours = Cascade.REGIMES.map((name, i) => (
    filter && filter !== name ? tokens.dim_words[i] : tokens.regime_words[i]
  ));
  for (let p = 0; p < w; p += 1) {
    if (body[p] === 255) continue;
    let level = height;
    for (let regime = 2; regime >= 0; regime -= 1) {
      const part = share[regime][p] * covered[p];
      if (part <= 0) continue;
      const size = regime === 0 && covered[p] > 0.999 ? level : Math.max(1, Math.round(part * height));
      const top = Math.max(0, level - size);
      for (let y = top; y < level; y += 1) words[y * w + p] = colours[regime];
      level = top;
    }
  }
  return picture.done();
};

Cascade.lanes.FleetLane = class FleetLane extends Cascade.lanes.Lane {
  constructor(timeline) {
    super(timeline, "fleet", "Fleet share");
    this.pinned = true;
    this.tip = "fleet share";
  }

  height() {
    return 42;
  }

  draw(context, y) {
    const { timeline } = this;
    const { left, plotWidth, tokens, view, story } = timeline;
    this.drawTitle(context, y);
    const height = this.height() - 6;
    const pixels = timeline.regimes.fleet();
    context.fillStyle = tokens.none;
    context.fillRect(left, y, plotWidth, height);
    if (!story.regimes.start_ns.length) {
      this.ground(context, y, height);
      this.words(context, y, height, "no regime was recorded in this run");
      return;
    }
    const image = this.image(pixels, Math.round(height * timeline.ratio), tokens, view.filter);
    this.drawStretched(context, image.canvas, pixels.a, pixels.b, y, height);
  }

  image(pixels, height, tokens, filter) {
    const kept = this.kept;
    if (kept && kept.pixels === pixels && kept.tokens === tokens && kept.filter === filter) return kept.image;
    const image = Cascade.lanes.shareImage(pixels, height, tokens, filter, kept && kept.image);
    this.kept = { pixels, tokens, filter, image };
    return image;
  }

  /** "48 STRONG, 12 CAUSAL, 4 no row". */
  note(t) {
    const { story, lookup, view } = this.timeline;
    const num = [0, 0, 0, 0];
    for (const rank of story.ranks) num[lookup.regimeAt(view.group, rank, t) ?? 3] += 1;
    const names = [...Cascade.REGIMES, "no row"];
    return names.filter((_, i) => num[i]).map((name) => `${num[names.indexOf(name)]} ${name}`).join(", ");
  }

  reading(t) {
    const pixels = this.timeline.regimes.onePixel(this.timeline.story.ranks, t);
    const lines = [];
    if (pixels.body[0] === 255) lines.push("no rank has a row here");
    else {
      for (let regime = 0; regime < 3; regime += 1) {
        const share = pixels.share[regime][0] * pixels.covered[0];
        if (share > 0) lines.push(`${Cascade.REGIMES[regime]} ${Cascade.format.percent(share)}`);
      }
      const none = 1 - pixels.covered[0];
      if (none > 1e-4) lines.push(`no row ${Cascade.format.percent(none)}`);
    }
    return { lines, rank: null, sel: null };
  }
};
