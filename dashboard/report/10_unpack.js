/* Cascade.unpack: the data blocks of a report file. They are deflated and in base64, so that nothing in
 * them can end the element that holds them. */
"use strict";

Cascade.unpack = (() => {
  const torn = () => new Cascade.Problem("bad", "this file is damaged or cut short; make it again with cascade report");

  function decoded(text) {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
    return bytes;
  }

  /** Bytes of the block of that name; its text is let go. Throws Problem. */
  async function bytes(name) {
    const block = document.getElementById(`cascade-${name}`);
    if (!block) throw torn();
    if (!window.DecompressionStream) {
      throw new Cascade.Problem("bad", "this browser is too old for this file: it needs one of 2023 or newer");
    }
    try {
      const stream = new Blob([decoded(block.textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
      const body = new Uint8Array(await new Response(stream).arrayBuffer());
      block.remove();
      return body;
    } catch {
      throw torn();
    }
  }

  async function json(name) {
    return JSON.parse(new TextDecoder().decode(await bytes(name)));
  }

  /** One column of whole numbers (dashboard/report/columns.py). */
  function column(body, { num, planes, delta, offset }) {
    const values = new Float64Array(num);
    let factor = 1;
    for (let plane = 0; plane < planes; plane += 1, factor *= 256) {
      const from = offset + plane * num;
      for (let i = 0; i < num; i += 1) values[i] += body[from + i] * factor;
    }
    let last = 0;
    for (let i = 0; i < num; i += 1) {
      const coded = values[i];
      const value = coded % 2 ? -(coded + 1) / 2 : coded / 2;
      last = delta ? last + value : value;
      values[i] = last;
    }
    return values;
  }

  /** {name: numbers} of a head's columns. */
  function columns(body, heads) {
    return Object.fromEntries(heads.map((head) => [head.name, column(body, head)]));
  }

  /** The story's regime columns. */
  function regimes(body, head) {
    const { group, rank, incarnation, epoch, regime, gap, length } = columns(body, head.columns);
    const num = rank.length;
    const start_ns = new Array(num);
    const end_ns = new Array(num);
    let at = 0;
    for (let i = 0; i < num; i += 1) {
      at += gap[i];
      start_ns[i] = at * head.unit_ns;
      at += length[i];
      end_ns[i] = at * head.unit_ns;
    }
    return {
      rank: Array.from(rank), incarnation: Array.from(incarnation), epoch: Array.from(epoch), regime: Array.from(regime),
      group: Array.from(group, (place) => head.groups[place]), start_ns, end_ns,
    };
  }

  return { bytes, json, columns, regimes };
})();
