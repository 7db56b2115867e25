/* Cascade.Trouble: what of the lanes could not be read, why, and a button that asks again. It also asks by itself. */
"use strict";

Cascade.Trouble = class Trouble {
  constructor(timeline) {
    const { el } = Cascade;
    this.timeline = timeline;
    this.text = el("span");
    this.root = el("div", { class: "ct-trouble", attrs: { role: "status", hidden: true } }, this.text, el("button", {
      class: "ct-button", text: "Try again", attrs: { type: "button" }, on: { click: () => this.retry() },
    }));
    timeline.frameNode.append(this.root);
  }

  retry() {
    const { tiles, sums } = this.timeline;
    if (tiles.failed) tiles.retry();
    if (sums.failed) sums.retry();
  }

  /** Puts it as things are now. While the server is out of reach the page says so at its top. */
  refresh() {
    const { tiles, sums, view } = this.timeline;
    const what = tiles.failed ? "Waits and utilisation" : sums.failed ? "The sums of this window" : "";
    const text = what && !view.problem ? `${what} could not be read: ${tiles.failed || sums.failed}. It is tried again.` : "";
    if (text === this.text.textContent) return;
    this.text.textContent = text;
    this.root.hidden = !text;
  }
};
