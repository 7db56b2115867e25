/* Cascade.lookup(story): answers about a story that lanes ask again and again; made once per story. */
"use strict";

Cascade.lookup = (() => {
  const kept = new WeakMap();

  /** Steps of what is open: times, number of debts and of updates in flight from each time on. */
  function debtSteps(story) {
    const changes = [];
    for (const debt of story.debts) {
      const updates = debt.num_in_flight || 0;
      changes.push([debt.opened_ns, 1, updates]);
      if (debt.closed_ns !== null && debt.closed_ns !== undefined) changes.push([debt.closed_ns, -1, -updates]);
    }
    changes.sort((x, y) => x[0] - y[0]);
    const steps = { at: [], open: [], in_flight: [], most_open: 0, most_in_flight: 0 };
    let [open, in_flight] = [0, 0];
    for (const [at, debts, updates] of changes) {
      open += debts;
      in_flight += updates;
      const last = steps.at.length - 1;
      if (last >= 0 && steps.at[last] === at) {
        steps.open[last] = open;
        steps.in_flight[last] = in_flight;
      } else {
        steps.at.push(at);
        steps.open.push(open);
        steps.in_flight.push(in_flight);
      }
    }
    steps.most_open = Math.max(0, ...steps.open);
    steps.most_in_flight = Math.max(0, ...steps.in_flight);
    return steps;
  }

  /** Index of the last entry of a sorted list that is <= t; -1 when there is none. */
  function lastUpTo(sorted, t) {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  class Lookup {
    constructor(story) {
      this.story = story;
      this.regimes = story.regimes; // silence is cut out of them already
      this.debts = debtSteps(story);
      this.lives = new Map();
      this.hosts = new Map();
      for (const actor of story.actors) {
        if (actor.kind !== "rank") continue;
        if (!this.lives.has(actor.rank)) this.lives.set(actor.rank, []);
        this.lives.get(actor.rank).push(actor);
        this.hosts.set(actor.rank, actor.host || "");
      }
      for (const lives of this.lives.values()) lives.sort((x, y) => x.first_ns - y.first_ns);
      this.num_violations = new Map();
      for (const one of story.violations) {
        this.num_violations.set(one.rank, (this.num_violations.get(one.rank) || 0) + 1);
      }
      this.waits = new Map((story.waits ? story.waits.by_rank : []).map((row) => [row.rank, row]));
      this.walks = new Map(story.groups.map((group) => [group, this.walksOf(group)]));
      this.walk_times = new Map([...this.walks].map(([group, walks]) => [group, walks.map((x) => x.at_ns)]));
    }

    walksOf(group) {
      return this.story.walks.filter((walk) => walk.group === group).sort((x, y) => x.at_ns - y.at_ns);
    }

    /** The last walk of the group at t, or null. */
    walkAt(group, t) {
      const at = lastUpTo(this.walk_times.get(group) || [], t);
      return at < 0 ? null : this.walks.get(group)[at];
    }

    /** Regime of a rank at t: 0, 1, 2, or null where it has no row. */
    regimeAt(group, rank, t) {
      const i = this.intervalAt(group, rank, t);
      return i < 0 ? null : this.regimes.regime[i];
    }

    /** The same, and of a rank that nobody said is gone: what it held when it left its last row. As state_at.py. */
    heldAt(group, rank, t) {
      const now = this.regimeAt(group, rank, t);
      const life = (this.lives.get(rank) || []).filter((one) => one.first_ns <= t).pop();
      if (now !== null || !life || life.end !== null || t < life.last_ns || this.absence(rank, t) !== "no row") return now;
      return this.regimeAt(group, rank, life.last_ns - 1);
    }

    /** Index of the interval of a rank that holds t, or -1. */
    intervalAt(group, rank, t) {
      const range = Cascade.rankRanges(this.regimes, group).get(rank);
      if (!range) return -1;
      if (this.story.run.state === "live") t = Math.min(t, this.story.t1_ns - 1); // the pulse is ahead of the story
      let [low, high] = range;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.regimes.start_ns[middle] <= t) low = middle + 1;
        else high = middle;
      }
      // The last one that began; one life before it may still hold t.
      for (let i = low - 1; i >= range[0] && i >= low - 3; i -= 1) {
        if (t < this.regimes.end_ns[i]) return i;
      }
      return -1;
    }

    /** Whether a life of a rank is not over: it is the rank's newest of a run that goes on, and nobody said that it left. */
    goesOn(life) {
      const lives = this.lives.get(life.rank);
      return Boolean(lives) && this.story.run.state === "live" && life.end === null && lives[lives.length - 1] === life;
    }

    /** Why a rank has no row at t, in words. */
    absence(rank, t) {
      const lives = this.lives.get(rank) || [];
      if (!lives.length) return "never sent a row";
      const here = lives.filter((life) => life.first_ns <= t).sort((x, y) => y.incarnation - x.incarnation)[0];
      const is = (x) => x.rank === rank && x.incarnation === here.incarnation && x.from_ns <= t && t < (x.to_ns ?? Infinity);
      if (here && this.story.silent.some(is)) return "silent";
      const before = lives.filter((life) => life.last_ns <= t).sort((x, y) => y.last_ns - x.last_ns)[0];
      if (!before) return "not there yet";
      return before.end ? `left (${before.end})` : "no row";
    }

    /** The same for a lane, as lines. */
    absences(rank, t) {
      return [this.absence(rank, t), this.whyEnded(rank, t)].filter(Boolean);
    }

    /** Whether a rank was there at t: between the first and the last row of a life. */
    isThere(rank, t) {
      return (this.lives.get(rank) || []).some((life) => life.first_ns <= t && (t <= life.last_ns || this.goesOn(life)));
    }

    /** How long after its last row a rank was seen to be gone, ns; null of who left in order, or was seen at once. */
    lateness(life) {
      if (!life.end || life.end === "finished") return null;
      const told = this.story.marks.filter((mark) => mark.rank === life.rank && mark.incarnation === life.incarnation
        && ["health", "departure"].includes(mark.kind) && mark.at_ns > life.last_ns);
      return told.length ? Math.min(...told.map((mark) => mark.at_ns)) - life.last_ns : null;
    }

    /** Why the lane of a rank that died ends before the death that is told; "" where it is not so at t. */
    whyEnded(rank, t) {
      const before = (this.lives.get(rank) || []).filter((life) => life.last_ns <= t).pop();
      const late = before ? this.lateness(before) : null;
      return late === null ? "" : `The lane ends with its last row; that it was gone was seen ${Cascade.format.duration(late)} later.`;
    }

    /** {open, in_flight} at t. */
    debtAt(t) {
      const at = lastUpTo(this.debts.at, t);
      return at < 0 ? { open: 0, in_flight: 0 } : { open: this.debts.open[at], in_flight: this.debts.in_flight[at] };
    }
  }

  function lookup(story) {
    if (!kept.has(story)) kept.set(story, new Lookup(story));
    return kept.get(story);
  }

  lookup.lastUpTo = lastUpTo;
  return lookup;
})();
