/* Cascade.decodeStory: a story whose regimes are bytes (dashboard/story/packed_story.py). */
"use strict";

Cascade.decodeStory = (() => {
  const TYPES = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

  /** The regimes' columns as typed arrays, without rank and group, which are those of its chains. */
  function regimes(buffer, at, { num, groups, chains, arrays }) {
    const { since, length, epoch, regime } = Object.fromEntries(
      arrays.map(({ name, dtype, offset }) => [name, new TYPES[dtype](buffer, at + offset, num)]),
    );
    // The two are made what is asked for where they lie.
    chains.first.forEach((first, c) => {
      const end = c + 1 < chains.first.length ? chains.first[c + 1] : num;
      let t = chains.begin_ns[c];
      for (let i = first; i < end; i += 1) {
        t += since[i];
        since[i] = t;
        length[i] += t;
      }
    });
    return { groups, chains, start_ns: since, end_ns: length, epoch, regime };
  }

  /** Body of the story route -> the story. Throws Problem on a torn one. */
  return function decodeStory(buffer) {
    try {
      const size = new DataView(buffer).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
      return { ...head.story, regimes: regimes(buffer, 4 + size, head.regimes) };
    } catch {
      throw new Cascade.Problem("bad", "the server sent a story that cannot be read; reload the page");
    }
  };
})();
