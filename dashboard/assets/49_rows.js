/* Rows of the timeline: ranks in the order asked for, or hosts where there are too many ranks, or on request. */
"use strict";

Cascade.rows = (() => {
  const MOST_RANKS = 128; // above it rows are hosts

  function weights(view, lookup) {
    if (view.sort === "violations") return lookup.num_violations;
    // Blame is what an analysis finds; before that it is only known who came last.
    const weight = (row) => (view.sort === "waited" ? row.waited_s : row.blamed_s ?? row.last_s) || 0;
    return new Map([...lookup.waits].map(([rank, row]) => [rank, weight(row)]));
  }

  /** "rank 2", with the incarnations that it came back as: "rank 2, 2.1", "rank 2 … 2.4". */
  function rankLabels(story) {
    const last = new Map();
    for (const { rank, incarnation } of story.actors) last.set(rank, Math.max(last.get(rank) || 0, incarnation));
    return (rank) => {
      const as = last.get(rank) || 0;
      return as === 0 ? `rank ${rank}` : `rank ${rank}${as === 1 ? "," : " …"} ${rank}.${as}`;
    };
  }

  /** [{label, ranks}] in order of display. */
  function rows(view, lookup) {
    const { ranks } = view.story;
    const label = rankLabels(view.story);
    const hosts = new Map();
    for (const rank of ranks) {
      const host = lookup.hosts.get(rank) || "";
      if (!hosts.has(host)) hosts.set(host, []);
      hosts.get(host).push(rank);
    }
    const folded = hosts.size > 1 && (view.rowsBy === "host" || (view.rowsBy === "auto" && ranks.length > MOST_RANKS));
    const all = folded
      ? [...hosts].map(([host, members]) => ({ label: host || "host unknown", ranks: members }))
      : ranks.map((rank) => ({ label: label(rank), ranks: [rank] }));
    if (view.sort !== "id") {
      const weight = weights(view, lookup);
      const sum = (row) => row.ranks.reduce((total, rank) => total + (weight.get(rank) || 0), 0);
      const sums = new Map(all.map((row) => [row, sum(row)]));
      all.sort((x, y) => sums.get(y) - sums.get(x) || x.ranks[0] - y.ranks[0]);
    }
    return all;
  }

  /** Pixels per row: comfortable while few, never under 3. */
  function rowHeight(num) {
    if (num < 24) return 18;
    return num < 64 ? 12 : num <= 128 ? 5 : 3;
  }

  /** Whether there is a choice: ranks on several hosts. */
  function foldable(lookup) {
    return new Set(lookup.hosts.values()).size > 1;
  }

  return Object.assign(rows, { rowHeight, foldable });
})();

/** Every lane, in order of display. */
Cascade.timelineLanes = (timeline) => {
  const { FleetLane, MarksLane, RegimeLane, BusyLane, WaitLane, DebtLane } = Cascade.lanes;
  return [
    new FleetLane(timeline), new MarksLane(timeline), new RegimeLane(timeline),
    new BusyLane(timeline, "gpu", "GPU utilisation"), new BusyLane(timeline, "cpu", "Process CPU busy"),
    new WaitLane(timeline, "waited", "Waited at barriers"), new WaitLane(timeline, "caused", "Caused waiting"),
    new DebtLane(timeline),
  ];
};
