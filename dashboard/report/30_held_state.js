/* Cascade.HeldState: who is where at a moment, from the story and from step and seq at moments some way
 * apart. It answers as the server's state does; what the file does not hold is null. */
"use strict";

Cascade.HeldState = class HeldState {
  /** head, body: of the block of states (dashboard/report/states.py). */
  constructor(story, head, body) {
    Object.assign(this, { story, head, held: Cascade.unpack.columns(body, head.columns) });
    this.row = new Map(story.ranks.map((rank, r) => [rank, r]));
    this.lives = new Map(story.ranks.map((rank) => [rank, []]));
    for (const actor of story.actors) {
      if (actor.kind !== "agent" && this.lives.has(actor.rank)) this.lives.get(actor.rank).push(actor);
    }
    for (const lives of this.lives.values()) lives.sort((x, y) => x.first_ns - y.first_ns);
  }

  at(t) {
    const { story } = this;
    const groups = this.groups(t);
    const ranks = [];
    for (const [rank, lives] of this.lives) {
      if (!lives.length) continue;
      const actor = lives.filter((life) => life.first_ns <= t).pop() || lives[0];
      ranks.push(this.rank(rank, actor, t, groups));
    }
    const live = ranks.filter((one) => one.state === "present" || one.state === "silent");
    const furthest = Math.max(...live.map((one) => one.step ?? -1));
    for (const one of live) if (one.step !== null) one.lag_steps = furthest - one.step;
    const walk = Cascade.lookup.lastUpTo(story.walks.map((one) => one.at_ns), t);
    return { t_ns: t, ranks, groups, last_walk: walk < 0 ? null : walk, note: this.note() };
  }

  rank(rank, actor, t, groups) {
    const { story } = this;
    const state = this.presence(actor, t);
    const held = state === "present" || state === "silent" ? this.regime(rank, actor, t) : null;
    const [step, seq] = this.progress(rank, actor, t);
    const open = story.debts.filter((debt) => debt.rank === rank && debt.opened_ns <= t && (debt.closed_ns === null || debt.closed_ns > t));
    return {
      rank, incarnation: actor.incarnation, state, end: state === "gone" ? actor.end : null,
      regime: held ? Cascade.REGIMES[held.regime] : null, since_ns: held ? held.since_ns : null, epoch: held ? held.epoch : null,
      cohort: this.cohort(rank, groups), step, seq, lag_steps: null, clock: [], num_in_flight: null,
      open_debt: open.length, gpu: null, cpu: null,
    };
  }

  presence(actor, t) {
    if (t < actor.first_ns) return "not_yet";
    if (actor.end !== null && t > actor.last_ns) return "gone";
    const silent = this.story.silent.some((one) => one.rank === actor.rank && one.incarnation === actor.incarnation && one.from_ns < t && t < (one.to_ns ?? Infinity));
    return silent ? "silent" : "present";
  }

  /** The weakest regime that the actor held in any group. */
  regime(rank, actor, t) {
    const { regimes, groups } = this.story;
    let found = null;
    for (const group of groups) {
      const range = Cascade.rankRanges(regimes, group).get(rank);
      if (!range) continue;
      let [low, high] = range;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (regimes.start_ns[middle] <= t) low = middle + 1;
        else high = middle;
      }
      let at = low - 1;
      while (at >= range[0] && regimes.incarnation[at] !== actor.incarnation) at -= 1;
      if (at < range[0]) continue;
      // Silence cuts an interval in two; it was held since the first part began.
      const before = (i) => ["incarnation", "regime", "epoch"].every((name) => regimes[name][i - 1] === regimes[name][at]);
      while (at > range[0] && before(at)) at -= 1;
      const held = { regime: regimes.regime[at], since_ns: regimes.start_ns[at], epoch: regimes.epoch[at] };
      if (!found || held.regime > found.regime || (held.regime === found.regime && held.since_ns > found.since_ns)) found = held;
    }
    return found;
  }

  /** [step, seq] as of the last moment that the file holds, of this life of the rank. */
  progress(rank, actor, t) {
    const { num } = this.head;
    const k = this.moment(t);
    if (k < 0 || this.timeOf(k) < actor.first_ns) return [null, null];
    const at = this.row.get(rank) * num + k;
    return [this.held.step[at], this.held.seq[at]].map((value) => (value < 0 ? null : value));
  }

  /** The last moment up to t, and when a moment was. */
  moment(t) {
    return Math.min(this.head.num - 1, Math.floor((t - this.head.first_ns) / this.head.every_ns));
  }

  timeOf(k) {
    return this.head.first_ns + k * this.head.every_ns;
  }

  groups(t) {
    const before = new Map(this.head.groups_before.map((one) => [one.group, one]));
    return this.story.groups.map((group) => {
      const walk = Cascade.lookup(this.story).walkAt(group, t);
      if (!walk) return before.get(group);
      return { group, epoch: walk.epoch, regime: walk.to, members: walk.members, missing: walk.missing, cohorts: walk.cohorts };
    }).filter(Boolean);
  }

  cohort(rank, groups) {
    for (const group of groups) {
      const found = group.cohorts.findIndex((cohort) => cohort.includes(rank));
      if (found >= 0) return found;
    }
    return 0;
  }

  /** What the panel says beside its time; the same at all times, as it is read out when it changes. */
  note() {
    const every = Cascade.format.duration(this.head.every_ns);
    return `steps are held every ${every}; clocks, updates in flight, GPU and CPU of a rank are not in this file`;
  }
};
