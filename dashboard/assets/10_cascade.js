/* Cascade: the one global. Namespace, DOM helpers, event emitter, words for numbers and times.
 *
 * Plain scripts in file-name order; each adds to this global. Text goes into the page by
 * textContent only: names, sentences and labels come from a trace and may be hostile.
 */
"use strict";

const Cascade = (() => {
  const REGIMES = ["STRONG", "CAUSAL", "EVENTUAL"];
  const SVG_SPACE = "http://www.w3.org/2000/svg";

  function fill(node, options, children) {
    const given = options || {};
    if (given.class) node.setAttribute("class", given.class);
    if (given.text !== undefined && given.text !== null) node.textContent = String(given.text);
    for (const [name, value] of Object.entries(given.attrs || {})) {
      if (/^on/i.test(name) || name === "style") throw new TypeError(`Cascade.el: no ${name} attribute`);
      // aria-* are words, true and false among them; other attributes are there or not.
      if (typeof value === "boolean" && name.startsWith("aria-")) node.setAttribute(name, String(value));
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
    }
    for (const [name, listener] of Object.entries(given.on || {})) node.addEventListener(name, listener);
    append(node, children);
    return node;
  }

  function append(node, children) {
    for (const child of children) {
      if (child === null || child === undefined || child === false) continue;
      if (Array.isArray(child)) append(node, child);
      else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
  }

  /** el("button", {class, text, attrs: {…}, on: {click}}, ...children). Strings become text nodes. */
  function el(tag, options, ...children) {
    return fill(document.createElement(tag), options, children);
  }

  /** The same for an SVG element. */
  function svg(tag, options, ...children) {
    return fill(document.createElementNS(SVG_SPACE, tag), options, children);
  }

  /** Empties a node and puts the children in. */
  function replace(node, ...children) {
    node.replaceChildren();
    append(node, children);
    return node;
  }

  /** on(name, fn) -> a function that takes the listener off again; emit(name, ...values). */
  class Emitter {
    constructor() {
      this.listeners = new Map();
    }

    on(name, listener) {
      if (!this.listeners.has(name)) this.listeners.set(name, new Set());
      this.listeners.get(name).add(listener);
      return () => this.listeners.get(name).delete(listener);
    }

    /** A listener that throws stops no other: its error is reported to the console. */
    emit(name, ...values) {
      for (const listener of [...(this.listeners.get(name) || [])]) {
        try {
          listener(...values);
        } catch (error) {
          console.error(`a listener of ${name} failed:`, error);
        }
      }
    }
  }

  /** What a source throws. kind: gone | refused | not_found | bad; text: one sentence. */
  class Problem extends Error {
    constructor(kind, text) {
      super(text);
      this.kind = kind;
    }
  }

  function clamp(value, low, high) {
    return Math.min(Math.max(value, low), high);
  }

  /** The last call within `wait_ms` runs, at most once per wait_ms; .cancel() drops what waits. */
  function throttle(action, wait_ms) {
    let timer = 0;
    let last = -Infinity;
    let latest = [];
    const run = () => {
      timer = 0;
      last = performance.now();
      action(...latest);
    };
    const throttled = (...values) => {
      latest = values;
      if (!timer) timer = setTimeout(run, Math.max(0, last + wait_ms - performance.now()));
    };
    throttled.cancel = () => {
      clearTimeout(timer);
      timer = 0;
    };
    return throttled;
  }

  /** {0, 1, 5-9}: a set of ranks in words. */
  function rankSet(ranks) {
    const sorted = [...new Set(ranks)].sort((x, y) => x - y);
    const parts = [];
    for (let i = 0; i < sorted.length; ) {
      let j = i;
      while (j + 1 < sorted.length && sorted[j + 1] === sorted[j] + 1) j += 1;
      if (j - i >= 2) parts.push(`${sorted[i]}-${sorted[j]}`);
      else for (let k = i; k <= j; k += 1) parts.push(String(sorted[k]));
      i = j + 1;
    }
    return `{${parts.join(", ")}}`;
  }

  /** plural(1, "update") = "1 update"; plural(2, "entry", "entries") = "2 entries". */
  function plural(count, one, many) {
    return `${Cascade.format.count(count)} ${count === 1 ? one : many || `${one}s`}`;
  }

  return {
    REGIMES, Emitter, Problem, el, svg, replace, clamp, throttle, rankSet, plural,
  };
})();
