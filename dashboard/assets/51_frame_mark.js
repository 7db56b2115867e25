/* Cascade.markFrame(timeline): what was drawn, in the browser's own list for whoever measures; the last frame only.
 * sharp: all of the picture is of this very window, nothing is stretched or still being read. */
"use strict";

Cascade.markFrame = (() => {
  const NAME = "cascade-frame";
  const newest = new WeakMap(); // story -> its highest epoch

  function epochOf(story) {
    if (!newest.has(story)) newest.set(story, story.walks.reduce((epoch, walk) => Math.max(epoch, walk.epoch), 0));
    return newest.get(story);
  }

  return function markFrame({ view, tiles, story, stretched }) {
    const tile = tiles.sharp();
    const sharp = !stretched && (!tiles.wanted.lanes.length || Boolean(tile && !tile.building));
    performance.clearMarks(NAME);
    performance.mark(NAME, { detail: { a: view.a, b: view.b, t1: view.t1, sharp, epoch: epochOf(story) } });
    view.emit("drawn", sharp);
  };
})();
