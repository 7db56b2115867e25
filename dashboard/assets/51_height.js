/* How high the timeline is: as its lanes take, up to what the first screen has left below what stands above
 * it and above what is to be seen without scrolling (leave: px, the replay bar and a violation's witness). */
"use strict";

Cascade.TimelineHeight = class TimelineHeight {
  static LEAST = 300; // px; beyond it lanes scroll
  static USUAL_TOP = 220; // px, until it is measured

  constructor(timeline, leave) {
    Object.assign(this, { timeline, leave, top: TimelineHeight.USUAL_TOP, key: "" });
    this.onResize = () => this.moved();
    window.addEventListener("resize", this.onResize);
    // Whatever grows above the timeline makes the page longer; here the browser has laid it out already.
    this.bodies = new ResizeObserver(this.onResize);
    this.bodies.observe(document.body);
  }

  stop() {
    window.removeEventListener("resize", this.onResize);
    this.bodies.disconnect();
  }

  /** The timeline may stand elsewhere now, or the screen be another. */
  moved() {
    const { scroller } = this.timeline;
    if (scroller.hidden) return;
    const top = Math.round(scroller.getBoundingClientRect().top + window.scrollY);
    if (top === this.top && window.innerHeight === this.screen) return;
    Object.assign(this, { top, screen: window.innerHeight });
    this.timeline.arrange();
  }

  get most() {
    return Math.max(TimelineHeight.LEAST, window.innerHeight - this.top - this.leave());
  }

  /** Makes both canvases as high as `full`, as far as it is in sight, and as wide as the plot; sets timeline.height. */
  fit(full) {
    const { timeline } = this;
    const { width, ratio, scroller } = timeline;
    const height = Math.min(full, this.most);
    const key = `${width} ${height} ${ratio}`;
    if (key === this.key) return;
    this.key = key;
    timeline.height = height;
    scroller.style.height = `${height}px`;
    for (const canvas of [timeline.base, timeline.overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
  }
};
