/* Cascade.lattice: the three regimes as nodes, the ranks on them by cohort, the last edge with its fault. */
"use strict";

Cascade.lattice = (() => {
  const { el, svg, replace, format, ui, rankSet } = Cascade;
  const NODE = { width: 148, height: 104, gap: 48, top: 40 };
  const WIDTH = 3 * NODE.width + 2 * NODE.gap;
  const HEIGHT = NODE.top + NODE.height + 30;
  const CHIP = { width: 23, height: 17, step: 26, row: 21, left: 10, top: 30 };
  const MOST_CHIPS = 15; // three rows of five
  const left = (regime) => regime * (NODE.width + NODE.gap);

  /** Where everybody is at t: {walk, nodes: [[ [rank…] of a cohort… ]×3], absent: [rank…]}. */
  function at(story, group, t) {
    const answers = Cascade.lookup(story);
    const walk = answers.walkAt(group, t);
    const cohort_of = new Map();
    if (walk) walk.cohorts.forEach((ranks, i) => ranks.forEach((rank) => cohort_of.set(rank, i)));
    const nodes = [new Map(), new Map(), new Map()];
    const absent = [];
    for (const rank of story.ranks) {
      const regime = answers.heldAt(group, rank, t);
      if (regime === null || regime === undefined) {
        absent.push(rank);
        continue;
      }
      const cohort = cohort_of.has(rank) ? cohort_of.get(rank) : -1;
      if (!nodes[regime].has(cohort)) nodes[regime].set(cohort, []);
      nodes[regime].get(cohort).push(rank);
    }
    return { walk, nodes: nodes.map((cohorts) => [...cohorts.entries()].sort((x, y) => x[0] - y[0]).map((e) => e[1])), absent };
  }

  function chips(cohorts, x, y) {
    const drawn = [];
    let i = 0;
    for (const ranks of cohorts) {
      const first = i;
      for (const rank of ranks) {
        const cx = x + CHIP.left + (i % 5) * CHIP.step;
        const cy = y + CHIP.top + Math.floor(i / 5) * CHIP.row;
        drawn.push(
          svg("rect", { class: "cr-svg-chip", attrs: { x: cx, y: cy, width: CHIP.width, height: CHIP.height, rx: 3 } }),
          svg("text", { class: "cr-svg-chiptext", text: rank, attrs: { x: cx + CHIP.width / 2, y: cy + 12.5, "text-anchor": "middle" } }),
        );
        // One line under the chips of one cohort, where there are several.
        if (cohorts.length > 1) {
          const to = i > first && i % 5 ? cx - (CHIP.step - CHIP.width) : cx;
          drawn.push(svg("line", { class: "cr-cut-lane", attrs: { x1: to, x2: cx + CHIP.width, y1: cy + CHIP.height + 1.5, y2: cy + CHIP.height + 1.5 } }));
        }
        i += 1;
      }
    }
    return drawn;
  }

  function node(regime, cohorts, current) {
    const name = Cascade.REGIMES[regime];
    const x = left(regime);
    const y = NODE.top;
    const ranks = cohorts.flat();
    const parts = [
      svg("rect", {
        class: `cr-node cr-node-${ui.CLASS_OF[name]}${current ? " cr-node-on" : ""}`,
        attrs: { x: x + 1.5, y, width: NODE.width - 3, height: NODE.height, rx: 6 },
      }),
      svg("text", { class: "cr-svg-text", text: name, attrs: { x: x + CHIP.left, y: y + 19 } }),
    ];
    if (ranks.length) {
      parts.push(svg("text", {
        class: "cr-svg-small", text: cohorts.length > 1 ? `${ranks.length} in ${cohorts.length} cohorts` : ranks.length,
        attrs: { x: x + NODE.width - CHIP.left, y: y + 19, "text-anchor": "end" },
      }));
    }
    if (ranks.length > MOST_CHIPS) {
      const lines = cohorts.length > 1 ? cohorts.map((c, i) => `cohort ${i}: ${c.length}`) : [rankSet(ranks)];
      parts.push(svg("text", { class: "cr-svg-text", text: `${ranks.length} ranks`, attrs: { x: x + CHIP.left, y: y + 46 } }));
      lines.slice(0, 3).forEach((text, i) => parts.push(svg("text", {
        class: "cr-svg-small", text: text.length > 22 ? `${text.slice(0, 21)}…` : text, attrs: { x: x + CHIP.left, y: y + 63 + i * 15 },
      })));
    } else parts.push(...chips(cohorts, x, y));
    return parts;
  }

  /** The way from one regime to another: down the lattice above, up the lattice below. */
  function way(from, to) {
    const mid = NODE.top + NODE.height / 2;
    if (from === to) {
      const x = left(from) + NODE.width / 2;
      return { d: `M${x - 16} ${NODE.top} C${x - 22} ${NODE.top - 22} ${x + 22} ${NODE.top - 22} ${x + 16} ${NODE.top - 1}`, x, y: NODE.top - 22, end: [x + 16, NODE.top, 0, 1] };
    }
    const down = to > from;
    if (Math.abs(to - from) === 2) {
      const [x1, x2] = [left(from) + NODE.width / 2, left(to) + NODE.width / 2];
      const y = down ? NODE.top : NODE.top + NODE.height;
      const far = down ? y - 30 : y + 26;
      return { d: `M${x1} ${y} C${x1} ${far} ${x2} ${far} ${x2} ${y + (down ? -6 : 6)}`, x: (x1 + x2) / 2, y: down ? 12 : HEIGHT - 4, end: [x2, y, 0, down ? 1 : -1] };
    }
    const y = mid + (down ? -12 : 12);
    const [x1, x2] = down ? [left(from) + NODE.width, left(to)] : [left(from), left(to) + NODE.width];
    const sign = down ? 1 : -1;
    return { d: `M${x1} ${y} L${x2 - sign * 6} ${y}`, x: (x1 + x2) / 2, y: HEIGHT - 8, end: [x2, y, sign, 0] };
  }

  function head([x, y, dx, dy]) {
    return `M${x} ${y} L${x - dx * 9 - dy * 5} ${y - dy * 9 - dx * 5} L${x - dx * 9 + dy * 5} ${y - dy * 9 + dx * 5} z`;
  }

  function edges(walk) {
    const parts = [[0, 1], [1, 0], [1, 2], [2, 1], [0, 2]].map(([from, to]) => svg("path", { class: "cr-way", attrs: { d: way(from, to).d } }));
    if (!walk) return parts;
    const of = (name) => (typeof name === "number" ? name : Cascade.REGIMES.indexOf(name));
    const [from, to] = [of(walk.from), of(walk.to)];
    if (from < 0 || to < 0) return parts;
    const last = way(from, to);
    parts.push(
      svg("path", { class: "cr-edge", attrs: { d: last.d } }),
      svg("path", { class: "cr-edge-head", attrs: { d: head(last.end) } }),
      svg("text", { class: "cr-svg-text", text: walk.fault || `epoch ${walk.epoch}`, attrs: { x: last.x, y: last.y, "text-anchor": "middle" } }),
    );
    return parts;
  }

  function words(story, view, found) {
    const { walk, absent } = found;
    const answers = Cascade.lookup(story);
    const gone = absent.slice(0, 8).map((rank) => `rank ${rank} ${answers.absence(rank, view.t)}`).join(", ");
    const more = absent.length > 8 ? ` and ${absent.length - 8} more` : "";
    return el("div", {},
      el("p", {}, Cascade.word("epoch"), " ", el("strong", { text: walk ? walk.epoch : 0 }), story.groups.length > 1 ? ` of ${view.group}` : "", walk && walk.members.length ? [", ", Cascade.word("members"), ` ${rankSet(walk.members)}`] : "", walk && !walk.members.length ? ", nobody is left in it" : ""),
      walk && walk.missing.length ? el("p", {}, ui.icon("warn", "warn"), " ", Cascade.word("missing"), ` ${rankSet(walk.missing)}`) : null,
      walk
        ? el("p", {}, el("span", { class: "cr-dim", text: `Last transition, ${format.duration(Math.max(0, view.t - walk.at_ns))} ago: ` }), walk.sentence || `${walk.from} to ${walk.to}`)
        : el("p", { class: "cr-dim", text: "No transition yet." }),
      walk && walk.reason && !(walk.sentence || "").includes(walk.reason) ? el("p", { class: "cr-dim", text: `Why: ${walk.reason}` }) : null,
      absent.length ? el("p", { class: "cr-dim", text: `Not there: ${gone}${more}` }) : null);
  }

  /** Puts the picture into `element`; draw() again after the cursor moved (cheap when nothing changed). */
  return function lattice(element, view) {
    let told = "";
    const picture = el("div");
    const text = el("div");
    element.append(el("div", { class: "cr-lattice" }, picture, text));

    function draw() {
      const { story } = view;
      if (!story) return;
      const found = at(story, view.group, view.t);
      replace(text, words(story, view, found));
      const key = JSON.stringify([found.walk && [found.walk.epoch, found.walk.at_ns], found.nodes]);
      if (key === told) return;
      told = key;
      const here = found.nodes.map((cohorts, i) => (cohorts.length ? `${Cascade.REGIMES[i]}: ranks ${rankSet(cohorts.flat())}` : null)).filter(Boolean).join("; ");
      const label = `Lattice. ${here || "nobody is there"}.${found.walk ? ` Last transition: ${found.walk.sentence || found.walk.fault || ""}` : ""}`;
      replace(picture, svg("svg", { attrs: { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label } },
        edges(found.walk), found.nodes.map((cohorts, i) => node(i, cohorts, cohorts.length > 0))));
    }

    return { draw };
  };
})();
