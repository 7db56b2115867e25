/* Pictures made of words (RGBA) for lanes of rows: one upload, however many cells. */
"use strict";

Cascade.lanes = { kinds: [] };

/** A picture of w x h RGBA words: fill .words (they are whatever they were), then .done(); .canvas can be
 * drawn. One of the same size is used again: pictures are made in every frame of a zoom. */
Cascade.lanes.Picture = class Picture {
  constructor(w, h) {
    this.canvas = new OffscreenCanvas(w, h);
    this.context = this.canvas.getContext("2d");
    this.image = new ImageData(w, h);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  static like(old, w, h) {
    const [wide, high] = [Math.max(1, w), Math.max(1, h)];
    return old && old.canvas.width === wide && old.canvas.height === high ? old : new Picture(wide, high);
  }

  done() {
    this.context.putImageData(this.image, 0, 0);
    return this;
  }
};

/** Rows of regimes at their height on screen: bodies, the worst as top edge, hatching on EVENTUAL and
 * where nobody was, a thin gap below each row. All opaque. */
Cascade.lanes.rowsImage = (() => {
  const NOBODY = 255;
  const HATCH = 6; // distance of the hatching's lines in device pixels, on each row of pixels
  const NARROW = 4; // an EVENTUAL narrower than this shows no hatching

  function colours(tokens, filter, ground, gap) {
    const mixed = (rgb) => tokens.word(tokens.mix(rgb, ground, gap));
    const rgb = tokens.regimes.map((colour, i) => (filter && filter !== Cascade.REGIMES[i] ? tokens.dim[i] : colour));
    const absent = tokens.rgb(tokens.absent);
    const [words, gaps] = [new Uint32Array(256), new Uint32Array(256)];
    rgb.forEach((colour, i) => {
      words[i] = tokens.word(colour);
      gaps[i] = mixed(colour);
    });
    words[NOBODY] = tokens.word(absent);
    gaps[NOBODY] = mixed(absent);
    return { words, gaps, hatch: tokens.word(tokens.rgb(tokens.hatch)), lines: tokens.word(tokens.mix(rgb[2], tokens.rgb(tokens["on-eventual"]), 0.34)) };
  }

  return function rowsImage({ body, worst, w, num_rows }, { tokens, view, rowHeight, ratio }, old) {
    const high = Math.max(1, Math.round(rowHeight * ratio));
    const gap = rowHeight >= 12 ? Math.round(2 * ratio) : rowHeight >= 4 ? Math.round(ratio) : 0;
    const thick = Math.max(1, Math.round((rowHeight >= 12 ? 3 : rowHeight >= 6 ? 2 : 1) * ratio));
    const { words, gaps, hatch, lines } = colours(tokens, view.filter, tokens.rgb(tokens["bg-raised"]), rowHeight >= 12 ? 1 : 0.6);
    const made = Cascade.lanes.Picture.like(old, w, high * num_rows);
    const picture = made.words;
    const [line, edge, low] = [new Uint32Array(w), new Uint32Array(w), new Uint32Array(w)];
    for (let r = 0; r < num_rows; r += 1) {
      const at = r * w;
      const top = r * high * w;
      let edged = false;
      for (let p = 0; p < w; p += 1) {
        const regime = body[at + p];
        line[p] = words[regime];
        low[p] = gaps[regime];
        const worse = worst[at + p];
        edge[p] = words[worse === NOBODY ? regime : worse];
        if (worse !== regime) edged = true;
      }
      for (let y = 0; y < high - gap; y += 1) picture.set(edged && y < thick ? edge : line, top + y * w);
      for (let y = high - gap; y < high; y += 1) picture.set(low, top + y * w);
      hatchRow(picture, body, { at, top, w, from: edged ? thick : 0, to: high - gap, first: r * high, hatch, lines });
    }
    return made.done();
  };

  function hatchRow(picture, body, { at, top, w, from, to, first, hatch, lines }) {
    let start = 0;
    for (let p = 1; p <= w; p += 1) {
      if (p < w && body[at + p] === body[at + start]) continue;
      const regime = body[at + start];
      if (regime === NOBODY || (regime === 2 && p - start >= NARROW)) {
        const colour = regime === NOBODY ? hatch : lines;
        for (let y = from; y < to; y += 1) {
          const shift = (start + first + y) % HATCH;
          for (let x = start + (shift ? HATCH - shift : 0); x < p; x += HATCH) picture[top + y * w + x] = colour;
        }
      }
      start = p;
    }
  }
})();
