/* Cascade.cut: the small space-time picture of a violation: only the ranks of its steps, dots numbered
 * like the text. A full arrow: the step follows from the one before it. Dashed: it does not, or too late. */
"use strict";

Cascade.cut = (() => {
  const { el, svg, replace, format, ui } = Cascade;
  const LEFT = 104; // of the longest name, "the host agent"
  const RIGHT = 16;
  const TOP = 18;
  const LANE = 34;
  const DOT = 9;
  const LEAST = 22; // px between dots of one rank, so that their numbers stay readable

  const key = (step) => `${step.rank}.${step.incarnation}.${step.seq}`;

  /** Dots (one an event, its step numbers) and edges {from, to, late} of a violation. */
  function graph(violation) {
    const dots = new Map();
    const edges = [];
    const own = violation.steps.findIndex((s) => s.rank === violation.rank && s.incarnation === violation.incarnation && s.seq === violation.seq);
    violation.steps.forEach((step, i) => {
      const at = key(step);
      const again = dots.has(at);
      if (!again) dots.set(at, { step, numbers: [], index: i });
      dots.get(at).numbers.push(i + 1);
      if (i === 0) return;
      const before = key(violation.steps[i - 1]);
      if (before !== at) edges.push({ from: before, to: at, late: step.edge === null || again || (own >= 0 && i > own), word: step.edge });
    });
    return { dots: [...dots.values()], edges };
  }

  /** x of each dot: on the time axis [a, b], or by order alone. */
  function places(dots, width, { a, b, logical }) {
    const inner = width - LEFT - RIGHT - 2 * DOT;
    const x = new Map();
    const timed = dots.every((dot) => Number.isFinite(dot.step.at_ns));
    const last_of = new Map();
    dots.forEach((dot, i) => {
      const share = logical || !timed || b <= a ? (dots.length > 1 ? i / (dots.length - 1) : 0.5) : Cascade.clamp((dot.step.at_ns - a) / (b - a), 0, 1);
      dot.x = LEFT + DOT + share * inner;
      x.set(key(dot.step), dot);
    });
    // Dots of one rank that would cover each other move apart, keeping their order.
    for (const dot of [...dots].sort((p, q) => p.x - q.x || p.index - q.index)) {
      const lane = `${dot.step.rank}.${dot.step.incarnation}`;
      const least = last_of.has(lane) ? last_of.get(lane) + LEAST : -Infinity;
      if (dot.x < least) dot.x = least;
      last_of.set(lane, dot.x);
    }
    const most = Math.max(...dots.map((dot) => dot.x));
    const over = most - (width - RIGHT - DOT);
    if (over > 0) for (const dot of dots) dot.x = LEFT + DOT + (dot.x - LEFT - DOT) * ((most - over - LEFT - DOT) / (most - LEFT - DOT));
    return { x, timed };
  }

  function arrow(from, to, late) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / length, dy / length];
    const [x1, y1, x2, y2] = [from.x + ux * DOT, from.y + uy * DOT, to.x - ux * (DOT + 2), to.y - uy * (DOT + 2)];
    const head = `M${x2} ${y2} L${x2 - ux * 7 - uy * 3.5} ${y2 - uy * 7 + ux * 3.5} L${x2 - ux * 7 + uy * 3.5} ${y2 - uy * 7 - ux * 3.5} z`;
    return [
      svg("line", { class: `cr-cut-edge${late ? " cr-cut-late" : ""}`, attrs: { x1, y1, x2, y2 } }),
      svg("path", { class: `cr-cut-head${late ? "-late" : ""}`, attrs: { d: head } }),
    ];
  }

  /** The window the picture uses: the timeline's where the steps fill a good part of it, else their own. */
  function axis(violation, view) {
    const times = violation.steps.map((step) => step.at_ns).filter(Number.isFinite);
    if (!times.length) return [0, 0];
    const [low, high] = [Math.min(...times), Math.max(...times)];
    if (view.a <= low && high <= view.b && (high - low) * 4 > view.b - view.a) return [view.a, view.b];
    const air = Math.max((high - low) * 0.06, 1e4);
    return [low >= 0 ? Math.max(0, low - air) : low - air, high + air];
  }

  /** draw(box, {view, violation, logical, current, onStep}): the picture and the words under it. */
  function draw(box, { view, violation, logical, current, onStep }) {
    const { story } = view;
    const { dots, edges } = graph(violation);
    if (!dots.length) {
      replace(box);
      return;
    }
    const lanes = [...new Set(dots.map((dot) => `${dot.step.rank}.${dot.step.incarnation}`))]
      .map((name) => name.split(".").map(Number)).sort((p, q) => p[0] - q[0] || p[1] - q[1]);
    const width = Math.max(320, box.clientWidth || 560);
    const height = TOP + lanes.length * LANE + 20;
    const [a, b] = axis(violation, view);
    const { x, timed } = places(dots, width, { a, b, logical });
    for (const dot of dots) {
      const lane = lanes.findIndex(([rank, incarnation]) => rank === dot.step.rank && incarnation === dot.step.incarnation);
      dot.y = TOP + lane * LANE + LANE / 2;
    }
    const skewed = edges.filter((e) => !e.late && x.get(e.to).step.at_ns < x.get(e.from).step.at_ns).length;
    const label = `Steps ${violation.steps.map((s, i) => `${i + 1} at ${ui.who(story, s.rank, s.incarnation)}`).join(", ")}`;
    const picture = svg("svg", { class: "cr-cut", attrs: { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label } },
      lanes.map(([rank, incarnation], i) => [
        svg("text", { class: "cr-svg-text", text: ui.who(story, rank, incarnation), attrs: { x: 8, y: TOP + i * LANE + LANE / 2 + 4 } }),
        svg("line", { class: "cr-cut-lane", attrs: { x1: LEFT, x2: width - 6, y1: TOP + i * LANE + LANE / 2, y2: TOP + i * LANE + LANE / 2 } }),
      ]),
      edges.map((edge) => arrow(x.get(edge.from), x.get(edge.to), edge.late)),
      dots.map((dot) => [
        svg("circle", {
          class: `cr-cut-dot${dot.numbers.includes(current + 1) ? " cr-cut-on" : ""}`,
          attrs: { cx: dot.x, cy: dot.y, r: DOT }, on: { click: () => onStep(dot.index) },
        }, svg("title", { text: dot.step.text })),
        svg("text", { class: "cr-svg-chiptext cr-cut-no", text: dot.numbers.join(","), attrs: { x: dot.x, y: dot.y + 4, "text-anchor": "middle" } }),
      ]),
      svg("text", { class: "cr-svg-small", text: logical || !timed ? "first" : format.time(a, view), attrs: { x: LEFT, y: height - 5 } }),
      svg("text", { class: "cr-svg-small", text: logical || !timed ? "last" : format.time(b, view), attrs: { x: width - 8, y: height - 5, "text-anchor": "end" } }));
    const shown = new Set(lanes.map(([rank]) => rank));
    const hidden = story.ranks.filter((rank) => !shown.has(rank)).length;
    replace(box, picture, el("p", { class: "cr-dim" },
      hidden ? `${Cascade.plural(hidden, "other rank")} hidden. ` : "",
      edges.some((e) => e.late) ? "Dashed: not ordered after the step before, or too late. " : "",
      skewed ? `${Cascade.plural(skewed, "arrow")} point back in time: clocks of the hosts disagree; use the logical order. ` : "",
      !timed && !logical ? "Some steps carry no time, so the order alone is shown." : ""));
  }

  return { draw, graph };
})();
