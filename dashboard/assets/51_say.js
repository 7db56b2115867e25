/* Cascade.sayCursor(timeline): the reading at the cursor in one sentence, for those who listen. */
"use strict";

Cascade.sayCursor = (() => {
  const LANES = ["fleet", "regime", "gpu", "cpu", "debt"];

  function sentence({ view, shown }) {
    const notes = shown.filter((lane) => LANES.includes(lane.name))
      .map((lane) => [lane.title, lane.note(view.t)]).filter(([, note]) => note);
    const said = notes.map(([title, note]) => `${title}: ${note}`).join(". ");
    return `Cursor at ${Cascade.format.time(view.t, view)}. ${said}`;
  }

  return function sayCursor(timeline) {
    const { view, overlay } = timeline;
    if (!timeline.story || !timeline.shown) return;
    const text = sentence(timeline);
    overlay.setAttribute("aria-label", `Timeline. ${text}`);
    if (document.activeElement === overlay && !view.playing && !view.follow) timeline.said.textContent = text;
  };
})();
