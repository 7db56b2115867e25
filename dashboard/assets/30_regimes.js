/* Regimes per pixel, exact: how long each row was in which regime, and the worst it saw.
 *
 * Time without a row is nobody's regime: it lowers `covered` and is drawn as a hatch, never as STRONG.
 */
"use strict";

/** regimePixels(regimes, rows, group, a, b, w): pure.
 * regimes: the story's columns, sorted by (group, rank, start). rows: a rank each, or a list of ranks.
 * Gives arrays of rows x w, row by row: share[0..2] (part of the covered time in STRONG, CAUSAL,
 * EVENTUAL: sums to 1 where covered > 0), covered (part of the pixel's time with a row), body (regime
 * with the largest share, the worse one on a tie) and worst (worst regime present for more than 0 ns);
 * 255 where nobody was. */
Cascade.regimePixels = (() => {
  const NOBODY = 255;

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
        Cascade.eachInterval(regimes, ranges.get(rank), a, b, w, (regime, from, to) => {
          add(share[regime], whole[regime], r * w, w, from, to);
        });
      }
      settle({ share, whole, covered, body, worst }, r * w, w, ranks.length);
    });
    return { share, covered, body, worst, w, num_rows: rows.length };
  }

  /** from, to in pixels. Parts of pixels are added where they are; whole ones as a step up and a step
   * down, summed up once per row however many ranks it has. */
  function add(parts, whole, at, w, from, to) {
    const first = Math.min(Math.floor(from), w - 1);
    const last = Math.min(Math.floor(to), w - 1);
    if (first === last) {
      parts[at + first] += to - from;
      return;
    }
    parts[at + first] += first + 1 - from;
    whole[first + 1] += 1;
    whole[last] -= 1;
    parts[at + last] += to - last;
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
    const time = [0, 0, 0]; // of the pixel that several intervals share
    let open = -1;
    let end = -Infinity;
    let apart = true;
    const close = () => {
      if (open < 0) return;
      const [s, c, e] = time;
      if (s + c + e > 0) {
        worst[at + open] = e > 0 ? 2 : c > 0 ? 1 : 0;
        if (s + c + e >= 0.5) body[at + open] = e >= c && e >= s ? 2 : c >= s ? 1 : 0;
      }
      time.fill(0);
      open = -1;
    };
    const part = (pixel, regime, length) => {
      if (pixel !== open) close();
      open = pixel;
      time[regime] += length;
    };
    Cascade.eachInterval(regimes, range, a, b, w, (regime, from, to) => {
      if (from < end - 1e-6) apart = false;
      end = to;
      const first = Math.min(Math.floor(from), w - 1);
      const last = Math.min(Math.floor(to), w - 1);
      if (first === last) {
        part(first, regime, to - from);
        return;
      }
      part(first, regime, first + 1 - from);
      if (last > first + 1) {
        body.fill(regime, at + first + 1, at + last);
        worst.fill(regime, at + first + 1, at + last);
      }
      if (to > last) part(last, regime, to - last);
    });
    close();
    if (!apart) {
      body.fill(NOBODY, at, at + w);
      worst.fill(NOBODY, at, at + w);
    }
    return apart;
  }

  return regimeBodies;
})();

/** Calls each(regime, from, to) for the intervals of one rank in [a, b], from and to in pixels of w. */
Cascade.eachInterval = (regimes, range, a, b, w, each) => {
  if (!range) return;
  const { start_ns, end_ns, regime } = regimes;
  const scale = w / (b - a);
  let [low, high] = range;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start_ns[middle] <= a) low = middle + 1;
    else high = middle;
  }
  // Sorted by start and hardly overlapping: step back over those that still reach into the window.
  let first = Math.max(range[0], low - 1);
  while (first > range[0] && end_ns[first - 1] > a) first -= 1;
  for (let i = first; i < range[1] && start_ns[i] < b; i += 1) {
    const start = start_ns[i] > a ? start_ns[i] : a;
    const end = end_ns[i] < b ? end_ns[i] : b;
    if (end <= start) continue;
    const from = (start - a) * scale;
    const to = Math.min(w, Math.max((end - a) * scale, from + 1e-9)); // never lost by rounding
    if (to > from) each(regime[i], from, to);
  }
};

/** Map of rank -> [begin, end) in the regime columns, for one group; kept per story and group. */
Cascade.rankRanges = (() => {
  const kept = new WeakMap();
  return (regimes, group) => {
    if (!kept.has(regimes)) kept.set(regimes, new Map());
    const groups = kept.get(regimes);
    if (groups.has(group)) return groups.get(group);
    const ranges = new Map();
    const { rank } = regimes;
    for (let i = 0; i < rank.length; i += 1) {
      if (regimes.group[i] !== group) continue;
      const range = ranges.get(rank[i]);
      if (range) range[1] = i + 1;
      else ranges.set(rank[i], [i, i + 1]);
    }
    groups.set(group, ranges);
    return ranges;
  };
})();
