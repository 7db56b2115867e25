/* Lanes "waited" and "caused": how much of each pixel's time a rank stood waiting, and how much waiting
 * it caused, of all that the others could have waited. At the right the sum of the window. The rank that others wait for is the gap in "waited". */
"use strict";

Cascade.lanes.WaitLane = class WaitLane extends Cascade.lanes.RowsLane {
  constructor(timeline, name, title) {
    super(timeline, name, title);
    this.tip = name;
  }

  get measured() {
    return (this.timeline.story.measured || {}).waits || { state: "measured", why: "" };
  }

  get isMeasured() {
    return this.measured.state !== "not_measured";
  }

  get notMeasured() {
    return `not measured: ${this.measured.why || "no reason was given"}`;
  }

  height() {
    return this.isMeasured || this.folded ? super.height() : this.titleHeight + 28;
  }

  draw(context, y) {
    if (this.isMeasured) {
      super.draw(context, y);
      return;
    }
    this.drawTitle(context, y);
    if (this.folded) return;
    this.ground(context, y + this.titleHeight, 22);
    this.words(context, y + this.titleHeight, 22, this.notMeasured);
  }

  drawRows(context, top, first, end) {
    const { timeline } = this;
    const { left, plotWidth, rowHeight } = timeline;
    const height = (end - first) * rowHeight;
    this.ground(context, top + first * rowHeight, height);
    const layers = timeline.tiles.layersFor(this.name);
    context.save();
    context.beginPath();
    context.rect(left, top + first * rowHeight, plotWidth, height);
    context.clip();
    context.imageSmoothingEnabled = false;
    for (const { tile, layer } of layers) {
      const x = timeline.x(tile.a);
      const width = timeline.x(tile.b) - x;
      const image = this.image(layer);
      context.drawImage(image, 0, first, layer.cols, end - first, x, top + first * rowHeight, width, height);
    }
    this.drawUnread(context, top, first, end, layers);
    this.drawAbsence(context, top, first, end);
    context.restore();
    this.drawGaps(context, top, first, end);
    this.drawSums(context, top, first, end);
    if (!layers.length) this.words(context, top + first * rowHeight, Math.min(height, 40), this.waitingFor());
  }

  /** The layer as a picture, one picture row per row on screen; kept with the layer. */
  image(layer) {
    const { rows, rowsKey, tokens } = this.timeline;
    const kept = layer.kept;
    if (kept && kept.rowsKey === rowsKey && kept.tokens === tokens) return kept.picture.canvas;
    const ramp = tokens.ramps[this.name];
    const { cols } = layer;
    const picture = Cascade.lanes.Picture.like(kept && kept.picture, cols, rows.length);
    const place = new Map(layer.rows.map((rank, i) => [rank, i]));
    const { words } = picture;
    const empty = [];
    for (let r = 0; r < rows.length; r += 1) {
      const values = this.rowValues(layer, rows[r].ranks.map((rank) => place.get(rank)).filter((i) => i !== undefined));
      let most = 0;
      for (let p = 0; p < cols; p += 1) {
        words[r * cols + p] = ramp[values[p]];
        most |= values[p];
      }
      empty.push(!most);
    }
    layer.kept = { rowsKey, tokens, empty, picture: picture.done() };
    return picture.canvas;
  }

  /** Coded values of one row; a host's is the mean of its ranks' shares. */
  rowValues(layer, places) {
    const { cols, data } = layer;
    if (places.length === 1) return data.subarray(places[0] * cols, (places[0] + 1) * cols);
    const values = new Uint8Array(cols);
    if (!places.length) return values;
    for (let p = 0; p < cols; p += 1) {
      let sum = 0;
      for (const place of places) sum += (data[place * cols + p] / 255) ** 2;
      values[p] = Math.ceil(255 * Math.sqrt(sum / places.length));
    }
    return values;
  }

  /** Hatch where a rank did not live: no wait there is no merit. */
  drawAbsence(context, top, first, end) {
    const { timeline } = this;
    const { rows, rowHeight, lookup, view, tokens } = timeline;
    context.beginPath();
    for (let r = first; r < end; r += 1) {
      if (rows[r].ranks.length !== 1) continue;
      const lives = lookup.lives.get(rows[r].ranks[0]) || [];
      let gone = view.a;
      for (const life of [...lives, { first_ns: view.b, last_ns: view.b }]) {
        const from = Math.max(gone, view.a);
        const to = Math.min(life.first_ns, view.b);
        if (timeline.x(to) - timeline.x(from) >= 0.5) {
          context.rect(timeline.x(from), top + r * rowHeight, timeline.x(to) - timeline.x(from), rowHeight);
        }
        // Who is still there has its next row only due: the pulse is ahead of the story.
        gone = Math.max(gone, lookup.goesOn(life) ? view.t1 : life.last_ns);
      }
    }
    context.fillStyle = tokens.none;
    context.fill();
  }

  /** Dots where what the rows say is not here yet, or was not read yet: no wait there is not known. */
  drawUnread(context, top, first, end, layers) {
    const { timeline } = this;
    const { rowHeight, tokens } = timeline;
    const stretches = this.unread(layers);
    const [low, high] = [top + first * rowHeight, (end - first) * rowHeight];
    context.fillStyle = tokens.loading;
    for (const [from, to] of stretches) {
      const width = timeline.x(to) - timeline.x(from);
      if (width >= 1) context.fillRect(timeline.x(from), low, width, high);
    }
    this.drawUnreadRows(context, top, first, end, layers);
  }

  /** The same for rows in which nothing was found yet while the server still reads. */
  drawUnreadRows(context, top, first, end, layers) {
    const { left, plotWidth, rowHeight, tokens } = this.timeline;
    if (!layers.length || !layers.some(({ tile }) => tile.building)) return;
    context.fillStyle = tokens.loading;
    for (let r = first; r < end; r += 1) {
      if (layers.every(({ layer }) => layer.kept && layer.kept.empty[r])) context.fillRect(left, top + r * rowHeight, plotWidth, rowHeight);
    }
  }

  /** The sum of the visible window, as a bar and, where there is room, in figures. */
  drawSums(context, top, first, end) {
    const { timeline } = this;
    const { left, plotWidth, right, rowHeight, tokens } = timeline;
    const sums = timeline.sums.of(this.name);
    if (!sums) {
      this.drawNoSums(context, top, first, end);
      return;
    }
    const most = Math.max(...sums.values, 1e-12);
    context.font = timeline.font(11);
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let r = first; r < end; r += 1) {
      const y = top + r * rowHeight;
      const width = (right - 10) * Math.max(0, sums.values[r] / most);
      const bar = Math.max(1, Math.min(rowHeight - 1, rowHeight >= 14 ? 3 : rowHeight - 1));
      context.fillStyle = tokens[this.name];
      if (sums.values[r] > 0) context.fillRect(left + plotWidth + 6, y + (rowHeight >= 14 ? rowHeight - 5 : 0), Math.max(1, width), bar);
      if (rowHeight < 14) continue;
      context.fillStyle = sums.values[r] > 0 ? tokens.fg : tokens["fg-dim"];
      context.fillText(this.sumText(sums, sums.values[r]), left + plotWidth + right - 4, y + rowHeight / 2 - (rowHeight >= 16 ? 2 : 0));
    }
  }

  /** "1.2 s"; "~1.2 s" where it is counted from the picture; "1.2 s…" and "loading…" while rows are still read. */
  sumText({ exact, reading }, value) {
    if (value === 0) return reading ? "loading…" : "0 s";
    const text = Cascade.format.seconds(value);
    return reading ? `${text}…` : exact ? text : `~${text}`;
  }

  /** In figures' place while nothing is known of this window. */
  drawNoSums(context, top, first, end) {
    const { left, plotWidth, right, rowHeight, tokens, tiles, sums } = this.timeline;
    if (rowHeight < 14) return;
    context.font = this.timeline.font(11);
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = tokens["fg-dim"];
    const text = tiles.failed || sums.failed ? "not read" : "loading…";
    for (let r = first; r < end; r += 1) context.fillText(text, left + plotWidth + right - 4, top + r * rowHeight + rowHeight / 2);
  }

  /** "1.2 s so far in this window": a sum in words. */
  said(sums, value) {
    if (sums.reading && value === 0) return `loading… (${Cascade.unfinished.progress(sums.reading)})`;
    const about = sums.exact || sums.reading ? "" : "about ";
    return `${about}${Cascade.format.seconds(value)}${sums.reading ? " so far" : ""}`;
  }

  /** Over all ranks: "1.2 s in this window, by rank". */
  note() {
    if (!this.isMeasured) return "";
    const sums = this.timeline.sums.of(this.name);
    if (!sums) return this.waitingFor();
    const total = sums.values.reduce((x, y) => x + y, 0);
    const said = this.said(sums, total);
    if (sums.reading && total === 0) return said;
    const source = [sums.provisional ? "provisional" : "", sums.reading ? Cascade.unfinished.progress(sums.reading) : ""].filter(Boolean);
    const coarse = [this.measured.why, this.timeline.coarse()].filter(Boolean).join("; ");
    return `${[`${said} in this window, all ranks together`, ...source].join(", ")}${coarse && `; ${coarse}`}`;
  }

  reading(t, y) {
    const { timeline } = this;
    if (!this.isMeasured) return { lines: [this.notMeasured], rank: null, sel: null };
    const r = this.rowAt(y);
    if (r < 0) return { lines: [this.note()].filter(Boolean), rank: null, sel: null };
    const row = timeline.rows[r];
    const single = row.ranks.length === 1;
    const rank = single ? row.ranks[0] : null;
    const found = timeline.tiles.sharpest(this.name, t);
    const lines = [];
    if (single && !timeline.lookup.isThere(rank, t)) lines.push(...timeline.lookup.absences(rank, t));
    else if (found) {
      const place = row.ranks.map((one) => found.layer.rows.indexOf(one)).filter((i) => i >= 0);
      const value = place.length ? this.rowValues(found.layer, place)[found.column] : 0;
      const share = (value / 255) ** 2;
      const caused = this.name === "caused";
      const word = caused ? "caused waits of" : "waited";
      const base = `${caused ? "all the others' time in " : ""}these ${Cascade.format.duration((found.tile.b - found.tile.a) / found.layer.cols)}`;
      const isRead = !found.tile.building && (found.tile.source !== "provisional" || !(t > found.tile.upto_ns));
      if (share > 0) lines.push(`${word} about ${Cascade.format.percent(share, base)}`);
      else lines.push(isRead ? (caused ? "caused no wait" : "did not wait") : "loading…: not read to here yet");
    } else lines.push(this.waitingFor());
    const sums = timeline.sums.of(this.name);
    if (sums) lines.push(`${this.said(sums, sums.values[r])} ${this.name} in this window${sums.provisional ? ", provisional" : ""}`);
    return { lines, row: row.label, rank, sel: single ? this.pairSel(rank) : null };
  }

  /** The largest wait that this rank suffered or caused, else the rank itself. */
  pairSel(rank) {
    const { waits } = this.timeline.story;
    const key = this.name === "waited" ? "waited" : "caused_by";
    const pair = waits ? waits.pairs.find((one) => one[key] === rank) : null;
    return pair ? `wait:${pair.caused_by}:${pair.waited}` : `rank:${rank}`;
  }
};
