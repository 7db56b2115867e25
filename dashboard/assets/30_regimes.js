/* Regimes per pixel, exact: how long each row was in which regime, and the worst it saw.
 *
 * Time without a row is nobody's regime: it lowers `covered` and is drawn as a hatch, never as STRONG.
 */
"use strict";

/** Where a moment lies, in pixels from a. What ends where a pixel does shall not reach into the next one: the
 * product is off by some 1e-12 at most, and a hundred times that counts as the border itself. */
Cascade.pixelAt = (t, a, scale) => {
  const x = (t - a) * scale;
  const border = Math.round(x);
  return Math.abs(x - border) < 1e-10 ? border : x;
};

/** regimePixels(regimes, rows, group, a, b, w): pure.
 * regimes: the story's columns, as a list each or as 24_story.js makes them, sorted by (group, rank, start). rows: a rank each, or a list of ranks.
 * Gives arrays of rows x w, row by row: share[0..2] (part of the covered time in STRONG, CAUSAL,
 * EVENTUAL: sums to 1 where covered > 0), covered (part of the pixel's time with a row), body (regime
 * with the largest share, the worse one on a tie) and worst (worst regime present for more than 0 ns);
 * 255 where nobody was. */
Cascade.regimePixels = (() => {
  const NOBODY = 255;
  const { pixelAt } = Cascade;

  function regimePixels(regimes, rows, group, a, b, w) {
    const size = rows.length * w;
    const share = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
    const covered = new Float64Array(size);
    const body = new Uint8Array(size).fill(NOBODY);
    const worst = new Uint8Array(size).fill(NOBODY);
    const ranges = Cascade.rankRanges(regimes, group);
    const whole = [new Int32Array(w + 1), new Int32Array(w + 1), new Int32Array(w + 1)];
    rows.forEach((row, r) => {
      const ranks = Array.isArray(row) ? row : [row];
      for (const rank of ranks) {
        const range = ranges.get(rank);
        if (range) add(regimes, range, a, b, w, share, whole, r * w);
      }
      settle({ share, whole, covered, body, worst }, r * w, w, ranks.length);
    });
    return { share, covered, body, worst, w, num_rows: rows.length };
  }

  /** The intervals of one rank. Parts of pixels are added where they are; whole ones as a step up and a
   * step down, summed up once per row however many ranks it has. */
  function add(regimes, range, a, b, w, share, whole, at) {
    const { start_ns, end_ns, regime } = regimes;
    const scale = w / (b - a);
    const end = range[1];
    for (let i = Cascade.firstInterval(regimes, range, a); i < end; i += 1) {
      const low = start_ns[i];
      const high = end_ns[i];
      if (low >= b) break;
      const from = low > a ? pixelAt(low, a, scale) : 0;
      // A moment is never lost by rounding; what lies before the window, or is no time at all, is none.
      const to = Math.min(w, Math.max(pixelAt(high < b ? high : b, a, scale), from + 1e-9));
      if (high <= low || high <= a || to <= from) continue;
      const parts = share[regime[i]];
      const first = Math.min(Math.floor(from), w - 1);
      const last = Math.min(Math.floor(to), w - 1);
      if (first === last) {
        parts[at + first] += to - from;
        continue;
      }
      parts[at + first] += first + 1 - from;
      whole[regime[i]][first + 1] += 1;
      whole[regime[i]][last] -= 1;
      parts[at + last] += to - last;
    }
  }

  /** Turns pixel-times of a row into shares of the covered time. */
  function settle({ share, whole, covered, body, worst }, at, w, num_ranks) {
    const [strong, causal, eventual] = share;
    let [s, c, e] = [0, 0, 0];
    for (let i = 0; i < w; i += 1) {
      const p = at + i;
      s += whole[0][i];
      c += whole[1][i];
      e += whole[2][i];
      const [in_strong, in_causal, in_eventual] = [strong[p] + s, causal[p] + c, eventual[p] + e];
      const total = in_strong + in_causal + in_eventual;
      if (total <= 0) continue;
      covered[p] = Math.min(1, total / num_ranks);
      strong[p] = in_strong / total;
      causal[p] = in_causal / total;
      eventual[p] = in_eventual / total;
      worst[p] = in_eventual > 0 ? 2 : in_causal > 0 ? 1 : 0;
      body[p] = in_eventual >= in_causal && in_eventual >= in_strong ? 2 : in_causal >= in_strong ? 1 : 0;
    }
    for (const one of whole) one.fill(0);
  }

  return regimePixels;
})();

/** regimeBodies(...): what regimePixels says of body and worst, for drawing rows, several times as fast:
 * a pixel that one interval fills is not computed but filled. body is 255 also where less than half of
 * the pixel's time has a row (what was there still shows in worst). */
Cascade.regimeBodies = (() => {
  const NOBODY = 255;
  const { pixelAt } = Cascade;

  function regimeBodies(regimes, rows, group, a, b, w) {
    const body = new Uint8Array(rows.length * w).fill(NOBODY);
    const worst = new Uint8Array(rows.length * w).fill(NOBODY);
    const ranges = Cascade.rankRanges(regimes, group);
    rows.forEach((ranks, r) => {
      if (ranks.length === 1 && oneRank(regimes, ranges.get(ranks[0]), a, b, w, body, worst, r * w)) return;
      const exact = Cascade.regimePixels(regimes, [ranks], group, a, b, w);
      worst.set(exact.worst, r * w);
      for (let p = 0; p < w; p += 1) body[r * w + p] = exact.covered[p] >= 0.5 ? exact.body[p] : NOBODY;
    });
    return { body, worst, w, num_rows: rows.length };
  }

  /** False when two intervals overlap (two lives of a rank at once): then it takes the exact way. */
  function oneRank(regimes, range, a, b, w, body, worst, at) {
    if (!range) return true;
    const { start_ns, end_ns, regime } = regimes;
    const scale = w / (b - a);
    let open = -1; // the pixel that several intervals share, and the time of each regime in it
    let s = 0;
    let c = 0;
    let e = 0;
    let before = -Infinity;
    for (let i = Cascade.firstInterval(regimes, range, a); i < range[1]; i += 1) {
      const low = start_ns[i];
      const high = end_ns[i];
      const code = regime[i];
      if (low >= b) break;
      let from = low > a ? pixelAt(low, a, scale) : 0;
      const to = Math.min(w, Math.max(pixelAt(high < b ? high : b, a, scale), from + 1e-9));
      if (high <= low || high <= a || to <= from) continue;
      if (from < before - 1e-6) {
        body.fill(NOBODY, at, at + w);
        worst.fill(NOBODY, at, at + w);
        return false;
      }
      before = to;
      const last = Math.min(Math.floor(to), w - 1);
      // The pixel in which it begins, those that it fills, the pixel in which it ends.
      for (let pixel = Math.min(Math.floor(from), w - 1); ; ) {
        if (pixel !== open) {
          close(body, worst, at + open, s, c, e);
          s = c = e = 0;
          open = pixel;
        }
        const length = (pixel === last ? to : pixel + 1) - from;
        if (code === 0) s += length;
        else if (code === 1) c += length;
        else e += length;
        if (pixel === last) break;
        if (last > pixel + 1) {
          body.fill(code, at + pixel + 1, at + last);
          worst.fill(code, at + pixel + 1, at + last);
        }
        if (to <= last) break;
        pixel = last;
        from = last;
      }
    }
    close(body, worst, at + open, s, c, e);
    return true;
  }

  function close(body, worst, p, s, c, e) {
    if (s + c + e <= 0) return;
    worst[p] = e > 0 ? 2 : c > 0 ? 1 : 0;
    if (s + c + e >= 0.5) body[p] = e >= c && e >= s ? 2 : c >= s ? 1 : 0;
  }

  return regimeBodies;
})();

/** The first interval of a rank's range that may reach into a window which begins at a. */
Cascade.firstInterval = ({ start_ns, end_ns }, range, a) => {
  let [low, high] = range;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start_ns[middle] <= a) low = middle + 1;
    else high = middle;
  }
  // Sorted by start and hardly overlapping: step back over those that still reach into the window.
  let first = Math.max(range[0], low - 1);
  while (first > range[0] && end_ns[first - 1] > a) first -= 1;
  return first;
};

/** Map of rank -> [begin, end) in the regime columns, for one group; kept per story and group. */
Cascade.rankRanges = (() => {
  const kept = new WeakMap();

  /** each(group, rank, begin, end) of stretches of one rank in one group. */
  function stretches({ rank, group, groups, chains, start_ns }, each) {
    if (chains) {
      chains.first.forEach((begin, c) => {
        each(groups[chains.group[c]], chains.rank[c], begin, chains.first[c + 1] ?? start_ns.length);
      });
      return;
    }
    for (let i = 0; i < rank.length;) {
      const begin = i;
      while (i < rank.length && rank[i] === rank[begin] && group[i] === group[begin]) i += 1;
      each(group[begin], rank[begin], begin, i);
    }
  }

  return (regimes, wanted) => {
    if (!kept.has(regimes)) kept.set(regimes, new Map());
    const groups = kept.get(regimes);
    if (groups.has(wanted)) return groups.get(wanted);
    const ranges = new Map();
    stretches(regimes, (group, rank, begin, end) => {
      if (group !== wanted) return;
      const range = ranges.get(rank);
      if (range) range[1] = end;
      else ranges.set(rank, [begin, end]);
    });
    groups.set(wanted, ranges);
    return ranges;
  };
})();
