/* Cascade.cutText(context, text, width): text no wider than width, with an ellipsis where it was cut. The
 * same few titles and labels are cut in every frame, and measuring is dear: answers are kept. */
"use strict";

Cascade.cutText = (() => {
  const MOST = 2000;
  const kept = new Map();

  function cut(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    return low ? `${text.slice(0, low)}…` : "";
  }

  return function cutText(context, text, width) {
    const key = `${context.font} ${width} ${text}`;
    let found = kept.get(key);
    if (found === undefined) {
      if (kept.size >= MOST) kept.clear();
      found = cut(context, text, width);
      kept.set(key, found);
    }
    return found;
  };
})();
