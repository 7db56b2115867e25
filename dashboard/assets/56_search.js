/* Search in a story: a rank, a rule's code, a fault, a word of a sentence. */
"use strict";

Cascade.find = (() => {
  /** Hits in order of time: [{sel, at_ns, text}]. A rank's number finds the rank itself first. */
  return function find(story, wanted) {
    const text = wanted.trim().toLowerCase();
    if (!text || !story) return [];
    const hits = [];
    const rank = /^(?:rank\s*)?(\d+)$/.exec(text);
    if (rank) {
      const sel = `rank:${Number(rank[1])}`;
      const found = Cascade.seek.find(story, sel);
      return found ? [{ sel, at_ns: null, text: `rank ${Number(rank[1])}` }] : [];
    }
    const has = (...parts) => parts.some((part) => part && String(part).toLowerCase().includes(text));
    for (const one of story.violations) {
      if (has(one.code, one.name, one.sentence)) hits.push({ sel: `violation:${one.id}`, at_ns: one.at_ns, text: one.sentence });
    }
    for (const walk of story.walks) {
      if (has(walk.fault, walk.reason, walk.sentence)) hits.push({ sel: Cascade.seek.walkSel(walk), at_ns: walk.at_ns, text: walk.sentence || walk.fault });
    }
    for (const mark of story.marks) {
      if (mark.kind === "transition" || mark.kind === "violation") continue; // found above
      if (has(mark.fault, mark.kind, mark.sentence)) hits.push({ sel: Number.isInteger(mark.rank) ? `rank:${mark.rank}` : null, at_ns: mark.at_ns, text: mark.sentence });
    }
    return hits.sort((x, y) => x.at_ns - y.at_ns);
  };
})();

Cascade.Search = class Search {
  constructor(timeline) {
    const { el } = Cascade;
    Object.assign(this, { timeline, hits: [], at: -1, asked: null });
    this.input = el("input", {
      class: "ct-search-input",
      attrs: { type: "search", placeholder: "Search  /", title: "A rank, a rule's code, a fault, a word of a sentence (/)", "aria-label": "Search rank, rule code or fault", spellcheck: "false" },
      on: { keydown: (event) => this.key(event), input: () => this.look() },
    });
    this.said = el("span", { class: "ct-search-said", attrs: { role: "status" } });
    this.root = el("div", { class: "ct-search", attrs: { role: "search" } }, this.input, this.said);
  }

  open() {
    this.input.focus();
    this.input.select();
  }

  look() {
    this.hits = Cascade.find(this.timeline.story, this.input.value);
    this.asked = this.input.value;
    this.at = -1;
    this.tell();
  }

  tell() {
    if (!this.input.value.trim()) this.said.textContent = "";
    else if (!this.hits.length) this.said.textContent = "nothing found";
    else this.said.textContent = this.at < 0 ? `${this.hits.length} found` : `${this.at + 1} of ${this.hits.length}`;
  }

  /** Enter: next hit, Shift+Enter: previous, Escape: back to the timeline. */
  key(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.look();
      this.timeline.overlay.focus();
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (this.asked !== this.input.value) this.look();
      this.go(event.shiftKey ? -1 : 1);
    }
  }

  go(direction) {
    if (!this.hits.length) return;
    const start = this.at < 0 && direction < 0 ? 0 : this.at;
    this.at = (start + direction + this.hits.length) % this.hits.length;
    const hit = this.hits[this.at];
    const { view } = this.timeline;
    if (hit.sel) view.set({ sel: hit.sel, step: 0 });
    if (hit.at_ns !== null) view.seek(hit.at_ns, { center: true });
    this.tell();
  }
};
