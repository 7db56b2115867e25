/* Cascade.timeline(element, {source, view, offline, leave}): lanes on one time axis with one cursor.
 *
 * Two canvases lie on each other: the lower holds lanes and is drawn when data or window change, the
 * upper holds what moves with mouse and cursor. Both are drawn at most once a frame, and only when dirty.
 * The canvas is as high as what is in sight; a spacer below it gives the native scrollbar.
 */
"use strict";

Cascade.Timeline = class Timeline {
  static RESTED_MS = 60; // that long without a move, and what was used again, stretched, is made anew

  constructor(element, { source, view, offline = false, leave = () => 16 }) {
    const { el } = Cascade;
    Object.assign(this, { element, source, view, offline, dirty: 0, frame: 0, scrolled: 0, offs: [], costs: [] });
    this.base = el("canvas", { class: "ct-base", attrs: { "aria-hidden": "true" } });
    this.overlay = el("canvas", {
      class: "ct-overlay",
      attrs: { tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-label": "Timeline of the run" },
    });
    this.card = el("div", { class: "ct-card", attrs: { hidden: true } });
    this.sticky = el("div", { class: "ct-sticky" }, this.base, this.overlay);
    this.spacer = el("div", { class: "ct-spacer" });
    this.scroller = el("div", { class: "ct-scroll" }, this.sticky, this.spacer);
    this.said = el("div", { class: "ct-said", attrs: { "aria-live": "polite" } });
    this.empty = el("div", { class: "ct-empty", text: "Reading the run" });
    this.below = el("button", {
      class: "ct-button ct-below", attrs: { type: "button", hidden: true }, on: { click: () => this.scroller.scrollBy(0, this.height * 0.7) },
    });
    this.frameNode = el("div", { class: "ct-frame" }, this.scroller, this.card, this.empty, this.below);
    this.trouble = new Cascade.Trouble(this);
    this.toolbar = new Cascade.Toolbar(this);
    this.root = el("section", { class: "ct-timeline", attrs: { "aria-label": "Timeline" } }, this.toolbar.root, this.frameNode, this.said);
    element.append(this.root);
    if (!document.documentElement.dataset.theme) Cascade.applyTheme(view.theme);
    this.tokens = Cascade.tokens(this.root);
    this.overview = new Cascade.lanes.Overview(this);
    this.lanes = Cascade.timelineLanes(this);
    this.tiles = new Cascade.Tiles(source, () => this.touch(3), (a, b) => view.fit(a, b));
    this.sums = new Cascade.WindowSums(this);
    this.size = new Cascade.TimelineHeight(this, leave);
    this.rows = [];
    this.rowsKey = "";
    this.regimes = new Cascade.WindowRegimes(this);
    this.listen();
    this.resize();
    this.storyChanged();
    this.pointer = new Cascade.Pointer(this);
    this.link = Cascade.permalink(view, { offline }); // before the first story comes
    this.offs.push(Cascade.keys(view, { timeline: this }), () => this.link.destroy());
    this.watcher = Cascade.watch(source, view, { offline });
  }

  listen() {
    const { view } = this;
    const on = (name, action) => this.offs.push(view.on(name, action));
    on("story", () => { this.storyChanged(); this.sums.grown(); });
    on("window", () => this.moved());
    on("pulse", () => { this.sums.grown(); this.touch(3); });
    for (const name of ["filter", "lanes", "sort", "group", "extent"]) on(name, () => this.arrange());
    on("clock", () => this.touch());
    for (const name of ["cursor", "hover", "select", "area", "flags", "problem"]) on(name, () => this.touch(1));
    on("cursor", Cascade.throttle(() => Cascade.sayCursor(this), 1000));
    this.renewCard = Cascade.throttle(Cascade.renewCard, 100);
    on("theme", (theme) => Cascade.applyTheme(theme));
    this.resizes = new ResizeObserver(() => this.resize());
    this.resizes.observe(this.frameNode);
    this.themes = new MutationObserver(() => this.restyle());
    this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    this.media = matchMedia("(prefers-color-scheme: dark)");
    this.onMedia = () => view.theme === "auto" && Cascade.applyTheme("auto");
    this.media.addEventListener("change", this.onMedia);
    // Kept, as asking for it makes the browser lay the page out there and then.
    this.scroller.addEventListener("scroll", () => { this.scrolled = this.scroller.scrollTop; this.touch(); this.sayBelow(); }, { passive: true });
  }

  destroy() {
    for (const off of this.offs) off();
    this.resizes.disconnect();
    this.themes.disconnect();
    this.media.removeEventListener("change", this.onMedia);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
    this.size.stop();
    this.renewCard.cancel();
    this.tiles.stop();
    this.sums.stop();
    this.watcher.stop();
    this.root.remove();
  }

  restyle() {
    this.tokens = Cascade.tokens(this.root);
    this.touch();
  }

  get story() {
    return this.view.story;
  }

  get lookup() {
    return Cascade.lookup(this.view.story);
  }

  /** What a report says where its columns are wider than a pixel; "" where they are not, and of a server. */
  coarse() {
    return this.source.coarse ? this.source.coarse(this.view.span / this.plotWidth) : "";
  }

  storyChanged() {
    this.regimes.clear();
    this.arrange();
  }

  // --- geometry ----------------------------------------------------------------------------------

  resize() {
    const width = this.scroller.clientWidth || this.frameNode.clientWidth; // while there is nothing to show it is hidden
    const ratio = window.devicePixelRatio || 1;
    if (width === this.width && ratio === this.ratio) return;
    const narrow = width < 720;
    Object.assign(this, { width, ratio, left: narrow ? 136 : 168, right: narrow ? 56 : 84 });
    this.plotWidth = Math.max(50, width - this.left - this.right);
    this.arrange();
  }

  /** Which lanes are where; sets the canvas to the height that this takes, as far as it is in sight. */
  arrange() {
    this.toolbar.refresh();
    const { story, view } = this;
    const ready = Boolean(story && story.ranks.length);
    this.empty.hidden = ready;
    this.scroller.hidden = !ready;
    if (!ready) {
      this.empty.textContent = story
        ? "No rank has sent a row yet. This fills by itself as soon as one does."
        : "Reading the run";
      return;
    }
    if (!this.width) this.resize();
    this.rows = Cascade.rows(view, this.lookup);
    this.rowsKey = `${view.sort} ${this.rows.map((row) => row.ranks.join("+")).join(" ")}`;
    this.rowHeight = Cascade.rows.rowHeight(this.rows.length);
    const hidden = view.lanes ? view.lanes.hidden : [];
    this.shown = this.lanes.filter((lane) => !hidden.includes(lane.name));
    let top = this.overview.height + this.overview.axisHeight;
    for (const lane of this.shown.filter((one) => one.pinned)) {
      lane.top = top;
      top += lane.height();
    }
    this.sightTop = top;
    for (const lane of this.shown.filter((one) => !one.pinned)) {
      lane.top = top;
      top += lane.height();
    }
    const full = top + 4;
    this.size.fit(full);
    this.spacer.style.height = `${full}px`;
    this.sayBelow();
    this.touch();
  }

  /** Says which lanes are out of sight below, so that nobody takes the first ones for all. */
  sayBelow() {
    const hidden = this.shown.filter((lane) => this.topOf(lane) + 20 > this.height);
    this.below.hidden = !hidden.length;
    this.below.textContent = hidden.length ? `↓ ${hidden.map((lane) => lane.title).join(", ")}` : "";
  }

  x(t) {
    return this.left + ((t - this.view.a) / (this.view.b - this.view.a)) * this.plotWidth;
  }

  time(x) {
    return this.view.a + ((x - this.left) / this.plotWidth) * (this.view.b - this.view.a);
  }

  /** Top of a lane on the canvas, scrolled. */
  topOf(lane) {
    return lane.pinned ? lane.top : lane.top - this.scrolled;
  }

  /** The lane under y of the canvas, or null. */
  laneAt(y) {
    const pinned = y < this.sightTop;
    const at = pinned ? y : y + this.scrolled;
    return this.shown.find((lane) => lane.pinned === pinned && at >= lane.top && at < lane.top + lane.height()) || null;
  }

  font(size, weight = 400) {
    return `${weight} ${size}px ${this.tokens.font}`;
  }

  /** Text no wider than `width`, with an ellipsis where it was cut. */
  cut(context, text, width) {
    return Cascade.cutText(context, text, width);
  }

  /** As many as the plot has device pixels. */
  get columns() {
    return Math.max(1, Math.round(this.plotWidth * this.ratio));
  }

  // --- frames ------------------------------------------------------------------------------------

  moved() {
    this.sums.moved();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.rest = 0;
      if (this.regimes.stretched) this.touch(3);
    }, Timeline.RESTED_MS);
    if (!this.wanting) this.wanting = Promise.resolve().then(() => this.wantSoon());
    this.touch(3);
  }

  /** Asks for a frame: 7 = everything, 3 = all but the titles at the left, 1 = only what lies above the lanes. */
  touch(layers = 7) {
    this.dirty |= layers;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const dirty = this.dirty;
    this.dirty = 0;
    if (!this.story || !this.shown || !this.width || this.scroller.hidden) return;
    const began = performance.now();
    if (dirty & 2) {
      this.wantTiles();
      this.drawBase(Boolean(dirty & 4));
      this.renewCard(this);
    }
    Cascade.drawOverlay(this);
    this.trouble.refresh();
    if (dirty & 2) Cascade.markFrame(this);
    this.costs.push(performance.now() - began);
    if (this.costs.length > 600) this.costs.shift();
  }

  wantSoon() {
    this.wanting = null;
    if (this.story && this.shown && this.width) this.wantTiles();
  }

  wantTiles() {
    const { view } = this;
    const lanes = ["waited", "caused", "gpu", "cpu"].filter((name) => {
      const lane = this.shown.find((one) => one.name === name);
      return lane && !lane.folded && lane.isMeasured !== false;
    });
    this.tiles.want(view.a, view.b, Math.min(8192, this.columns), lanes, null, Cascade.Tiles.versionOf(view.pulse));
  }

  /** withGutter: titles and labels too; a window that moves leaves them as they are. */
  drawBase(withGutter) {
    const context = this.base.getContext("2d");
    const { tokens, width, height } = this;
    const from = withGutter ? 0 : this.left;
    this.drawsGutter = withGutter;
    this.regimes.stretched = false;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.save();
    context.beginPath();
    context.rect(from, 0, width - from, height);
    context.clip();
    context.fillStyle = tokens["bg-raised"];
    context.fillRect(from, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(from, this.sightTop, width - from, height - this.sightTop);
    context.clip();
    for (const lane of this.shown) {
      const y = this.topOf(lane);
      if (!lane.pinned && y < height && y + lane.height() > this.sightTop) lane.draw(context, y);
    }
    context.restore();
    this.overview.draw(context);
    this.overview.drawAxis(context, this.overview.height);
    for (const lane of this.shown.filter((one) => one.pinned)) lane.draw(context, lane.top);
    if (this.scrolled > 0) {
      context.fillStyle = tokens.line;
      context.fillRect(0, this.sightTop - 1, width, 1);
    }
    context.restore();
  }
};

/** Builds the timeline inside element; gives {destroy, timeline}. Starts the view's watcher. */
Cascade.timeline = (element, options) => {
  const timeline = new Cascade.Timeline(element, options);
  return { timeline, destroy: () => timeline.destroy() };
};
