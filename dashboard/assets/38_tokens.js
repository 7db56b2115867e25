/* Cascade.tokens(element): the CSS variables a canvas needs, with ramps and hatches made of them. */
"use strict";

Cascade.tokens = (() => {
  const NAMES = [
    "bg", "bg-raised", "bg-sunken", "fg", "fg-dim", "faint", "line", "line-strong", "accent", "on-accent", "focus",
    "selection", "cursor", "regime-strong", "regime-causal", "regime-eventual", "on-strong", "on-causal",
    "on-eventual", "absent", "hatch", "ok", "warn", "bad", "waited", "caused", "gpu", "cpu", "debt",
  ];
  const DIMMED = 0.8; // how far a colour the legend filters out goes towards the background

  /** Any CSS colour -> [r, g, b], as the browser itself understands it. */
  function reader() {
    const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    return (colour) => {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = "#808080";
      pixel.fillStyle = colour;
      pixel.fillRect(0, 0, 1, 1);
      return [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    };
  }

  /** The same colour is read once: reading a pixel back is slow. */
  function remembering(read) {
    const known = new Map();
    return (colour) => {
      if (!known.has(colour)) known.set(colour, read(colour));
      return known.get(colour);
    };
  }

  function mix(from, to, share) {
    return from.map((value, i) => Math.round(value + (to[i] - value) * share));
  }

  /** [r, g, b] -> one little-endian RGBA word, opaque. */
  function word([r, g, b]) {
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }

  function css([r, g, b], alpha = 1) {
    return `rgb(${r} ${g} ${b} / ${alpha})`;
  }

  /** 256 words from the empty lane to the lane's own colour, which is that of panels and charts; any value
   * above 0 can be seen. */
  function ramp(empty, full) {
    const words = new Uint32Array(256);
    words[0] = word(empty);
    for (let v = 1; v < 256; v += 1) words[v] = word(mix(empty, full, 0.22 + (0.78 * v) / 255));
    return words;
  }

  /** Diagonal lines as a pattern; `colour` on nothing, or on `ground` where given. */
  function hatch(colour, ground, distance = 6) {
    const tile = new OffscreenCanvas(distance, distance);
    const context = tile.getContext("2d");
    if (ground) {
      context.fillStyle = ground;
      context.fillRect(0, 0, distance, distance);
    }
    context.strokeStyle = colour;
    context.lineWidth = 1.2;
    context.beginPath();
    for (const at of [-distance, 0, distance]) {
      context.moveTo(at - 1, distance + 1);
      context.lineTo(at + distance + 1, -1);
    }
    context.stroke();
    return context.createPattern(tile, "repeat");
  }

  /** Fine dots: what is there is not known yet. */
  function dots(colour, ground, distance = 4) {
    const tile = new OffscreenCanvas(distance, distance);
    const context = tile.getContext("2d");
    context.fillStyle = ground;
    context.fillRect(0, 0, distance, distance);
    context.fillStyle = colour;
    context.fillRect(1, 1, 1, 1);
    return context.createPattern(tile, "repeat");
  }

  return function tokens(element) {
    const style = getComputedStyle(element);
    const rgb = remembering(reader());
    const css_of = {};
    for (const name of NAMES) css_of[name] = style.getPropertyValue(`--${name}`).trim() || "#808080";
    const ground = rgb(css_of["bg-raised"]);
    const regimes = ["regime-strong", "regime-causal", "regime-eventual"].map((name) => rgb(css_of[name]));
    const dark = ground[0] + ground[1] + ground[2] < 384;
    const empty = rgb(css_of["bg-sunken"]);
    const dim = regimes.map((colour) => mix(colour, ground, DIMMED));
    const ramp_of = (name) => ramp(empty, rgb(css_of[name]));
    return {
      ...css_of, dark, rgb, mix, css, word, regimes, dim,
      regime_words: regimes.map(word), regime_css: regimes.map((colour) => css(colour)),
      dim_words: dim.map(word), dim_css: dim.map((colour) => css(colour)),
      on: [css_of["on-strong"], css_of["on-causal"], css_of["on-eventual"]],
      ramps: { waited: ramp_of("waited"), caused: ramp_of("caused") },
      none: hatch(css_of.hatch, css_of.absent), loading: dots(css_of.hatch, css_of["bg-sunken"]),
      font: style.getPropertyValue("--sans").trim() || "system-ui, sans-serif",
    };
  };
})();

/** The theme on screen: "light" or "dark". */
Cascade.shownTheme = () => document.documentElement.dataset.theme || Cascade.systemTheme();

Cascade.systemTheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

/** Puts view.theme on the page as data-theme, which is all that the palettes look at; "auto": the system's. */
Cascade.applyTheme = (theme) => {
  const wanted = theme === "auto" ? Cascade.systemTheme() : theme;
  if (document.documentElement.dataset.theme !== wanted) document.documentElement.dataset.theme = wanted;
};
