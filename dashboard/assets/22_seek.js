/* Cascade.seek: where to go next in a story, and which stretch a selection covers. */
"use strict";

Cascade.seek = (() => {
  const THE_END = "loss:end"; // that the run has no clean end: where it ends there is nothing to see
  const EVEN_A_MOMENT_NS = 50e6; // what is shown around a single moment, at least

  /** "walk:world:3" -> ["walk", "world:3"]. */
  function split(sel) {
    const at = (sel || "").indexOf(":");
    return at < 0 ? [sel || "", ""] : [sel.slice(0, at), sel.slice(at + 1)];
  }

  const walkId = (walk) => walk.id ?? `${walk.group}:${walk.epoch}`;

  /** The name a walk is selected by. Of several sides of one epoch each has its own. */
  const walkSel = (walk) => `walk:${walkId(walk)}`;

  /** What a selection names: {kind, item, at_ns, a, b}, or null when the story has no such thing. */
  function find(story, sel) {
    if (!story || !sel) return null;
    const [kind, id] = split(sel);
    if (kind === "violation") {
      const item = story.violations.find((one) => one.id === id);
      if (!item) return null;
      const times = [item.at_ns, ...item.steps.map((step) => step.at_ns)].filter((t) => Number.isFinite(t));
      return around(kind, item, item.at_ns, Math.min(...times), Math.max(...times));
    }
    if (kind === "walk") {
      const item = story.walks.find((walk) => walkId(walk) === id);
      return item ? around(kind, item, item.at_ns, item.at_ns, item.at_ns, 1e9) : null;
    }
    if (kind === "incident") {
      const item = story.incidents.find((one) => String(one.id) === id);
      if (!item) return null;
      return around(kind, item, item.at_ns, item.a_ns ?? item.at_ns, item.b_ns ?? item.end_ns ?? item.at_ns);
    }
    if (kind === "rank") {
      const lives = story.actors.filter((actor) => actor.kind === "rank" && actor.rank === Number(id));
      if (!lives.length) return null;
      const [a, b] = [Math.min(...lives.map((x) => x.first_ns)), Math.max(...lives.map((x) => x.last_ns))];
      return { kind, item: lives, at_ns: a, a, b };
    }
    if (kind === "wait") {
      const [by, waited] = id.split(":").map(Number);
      const pairs = story.waits ? story.waits.pairs : [];
      const item = pairs.find((pair) => pair.caused_by === by && pair.waited === waited);
      return item ? { kind, item, at_ns: 0, a: 0, b: story.t1_ns } : null;
    }
    return null;
  }

  function around(kind, item, at_ns, a, b, least = EVEN_A_MOMENT_NS) {
    const lack = Math.max(0, least - (b - a)) / 2;
    return { kind, item, at_ns, a: a - lack, b: b + lack };
  }

  /** Times of the walks of a story, sorted, each once. */
  function moments(story, group) {
    const walks = (story ? story.walks : []).filter((walk) => !group || walk.group === group);
    return [...new Set(walks.map((walk) => walk.at_ns))].sort((x, y) => x - y);
  }

  /** Cursor to the next (1) or previous (-1) transition; false when there is none. */
  function transition(view, direction) {
    const times = moments(view.story, view.group);
    const next = direction > 0 ? times.find((t) => t > view.t) : times.reverse().find((t) => t < view.t);
    if (next === undefined) return false;
    const walk = view.story.walks.find((one) => one.at_ns === next && one.group === view.group);
    view.seek(next);
    view.set({ sel: walkSel(walk) });
    return true;
  }

  /** Selects sel, puts the cursor on it; the window moves only when that is out of sight. */
  function select(view, sel, { show = false } = {}) {
    const found = find(view.story, sel);
    view.set({ sel, step: 0 });
    if (!found) return false;
    if (found.kind !== "rank" && found.kind !== "wait") view.seek(found.at_ns);
    if (show) view.show(found.a, found.b);
    return true;
  }

  /** The name an incident is selected by: what it points at where it points at something. */
  function incidentSel(incident) {
    return incident.sel || `incident:${incident.id}`;
  }

  /** Next or previous step of the selected violation. */
  function step(view, direction) {
    const found = find(view.story, view.sel);
    if (!found || found.kind !== "violation" || !found.item.steps.length) return false;
    const next = Cascade.clamp(view.step + direction, 0, found.item.steps.length - 1);
    view.set({ step: next });
    const at = found.item.steps[next].at_ns;
    if (Number.isFinite(at)) view.seek(at);
    return true;
  }

  /** Where a page opens that was given no place: first violation, worst incident, or all of it. */
  function open(view) {
    const story = view.story;
    if (!story) return;
    view.set({ t1: Math.max(story.t1_ns, 1) });
    if (Cascade.unfinished.grows(view)) {
      view.set({ a: -view.t1 * 0.01, b: view.t1 * 1.04 });
      view.followLive();
      return;
    }
    const first = [...story.violations].sort((x, y) => x.at_ns - y.at_ns)[0];
    const worst = story.incidents.find((one) => one.id !== THE_END);
    if (first) select(view, `violation:${first.id}`, { show: true });
    else if (worst) {
      select(view, incidentSel(worst));
      view.seek(worst.kind === "wait" ? begin(story, view.group) : worst.at_ns);
      view.show(worst.a_ns ?? worst.at_ns, worst.b_ns ?? worst.at_ns);
    } else {
      view.whole();
      view.seek(begin(story, view.group));
    }
  }

  /** Where a page goes that followed a run to its end: as open, but what was in sight as a whole stays so. */
  function close(view) {
    open(view);
    if (view.isShort()) view.whole();
  }

  /** From when on every rank is there: before that the state at the cursor has nothing to say. */
  function begin({ regimes }, group) {
    const starts = [...Cascade.rankRanges(regimes, group).values()].map(([first]) => regimes.start_ns[first]);
    return starts.reduce((last, at) => Math.max(last, at), 0);
  }

  return { find, moments, transition, walkSel, incidentSel, select, step, open, close };
})();
