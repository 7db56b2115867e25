/* Cascade.watch(source, view): asks the source and keeps view.story, view.pulse and view.problem right.
 *
 * Live: pulse and story are asked for together, and the round is over when both are there. The server holds the
 * story back until there is a new one, half a second at most, so that is how often the pulse comes. After a new
 * story the next round begins at once, else a quarter of a second later. A hidden page asks nothing.
 * Ended: now and then while something is still being worked out, then never again. Offline: once.
 * One watcher per view: a second call gives the first one back.
 */
"use strict";

Cascade.watch = (() => {
  const PULSE_MS = 250;
  const AT_ONCE_MS = 50;
  const GROWING = ["live", "waiting"];
  const LAGGING_MS = 250;
  const SETTLING_MS = 1500;
  const BUILDING_MS = 400;
  const SLOWEST_RETRY_MS = 2000;
  const watchers = new WeakMap();

  const place = ({ a, b, t, sel, step }) => JSON.stringify([a, b, t, sel, step]);

  class Watcher {
    constructor(source, view, offline) {
      Object.assign(this, { source, view, offline, stopped: false, timer: 0, failures: 0, silentSince: null });
      this.heard = null;
      this.go = Cascade.seek.open;
      this.onVisible = () => {
        if (!document.hidden) this.plan(0);
      };
      document.addEventListener("visibilitychange", this.onVisible);
      this.ready = this.round();
    }

    stop() {
      this.stopped = true;
      clearTimeout(this.timer);
      document.removeEventListener("visibilitychange", this.onVisible);
      watchers.delete(this.view);
    }

    plan(wait_ms) {
      clearTimeout(this.timer);
      if (!this.stopped && !document.hidden) this.timer = setTimeout(() => this.round(), wait_ms);
    }

    async round() {
      if (this.busy) return;
      this.busy = true;
      let wait = null;
      try {
        wait = await this.look();
        this.heard = Date.now();
        this.failures = 0;
        this.silentSince = null;
        if (this.view.problem) this.view.set({ problem: null });
      } catch (error) {
        wait = this.failed(error);
      } finally {
        this.busy = false;
      }
      if (wait !== null) this.plan(wait);
    }

    /** One round of questions; how long to wait for the next, or null for never. */
    async look() {
      const { view, source } = this;
      const first = view.story === null;
      const grows = !first && Boolean(view.pulse) && GROWING.includes(view.pulse.state);
      // Both at once: under load each question costs a wait, and the story's holds the next mark.
      const question = first ? { soon: true } : grows ? {} : null;
      const [pulse, early] = this.offline ? [null, null] : await Promise.all([source.pulse(), question && source.story(question)]);
      if (this.stopped) return null;
      if (first && !early && pulse && pulse.is_told === false) throw new Cascade.Problem("building", this.patience(pulse));
      let next = PULSE_MS;
      if (early || first || !pulse || pulse.version !== view.story.version) {
        const story = early || (await source.story());
        if (this.stopped) return null;
        if (story !== view.story) {
          this.take(story, first);
          next = AT_ONCE_MS; // the next one is waited for at the server, which tells it when it can
        }
      }
      if (!pulse) return null;
      if (pulse.t1_ns > view.t1 || view.follow) view.advance(Math.max(pulse.t1_ns, view.story.t1_ns));
      view.set({ pulse });
      if (GROWING.includes(pulse.state)) return next;
      if (early && pulse.version !== view.story.version) return AT_ONCE_MS; // that story may be of before the end
      if (GROWING.includes(view.story.run.state) && pulse.version !== view.story.version) return LAGGING_MS; // so is what is on the page
      if (view.follow) this.ended();
      const verdict = view.story.verdict.state;
      return pulse.building || verdict === "judging" ? SETTLING_MS : null;
    }

    /** The run that was followed is over, and nobody has moved: the page goes to what is to be looked at. */
    ended() {
      const { view } = this;
      view.set({ follow: false });
      this.go = Cascade.seek.close;
      this.go(view);
      this.opened = view.story.verdict.state === "judging" ? place(view) : null;
    }

    take(story, first) {
      const { view } = this;
      const groups = story.groups.includes(view.group) || !story.groups.length ? {} : { group: story.groups[0] };
      view.set({ story, ...groups });
      if (first && view.given) {
        view.set({ t1: Math.max(story.t1_ns, 1) });
        view.given(view);
      } else if (first || this.opened === place(view)) {
        // Opened before the analysis was through, and nobody has moved since: it may have found a violation.
        this.go(view);
        this.opened = story.verdict.state === "judging" && story.run.state !== "live" ? place(view) : null;
      }
    }

    failed(error) {
      const { view } = this;
      const kind = error instanceof Cascade.Problem ? error.kind : "bad";
      if (kind === "building") {
        view.set({ problem: { kind, text: error.message } });
        return BUILDING_MS;
      }
      if (kind === "bad") console.error(error);
      this.failures += 1;
      this.silentSince = this.silentSince || Date.now();
      view.set({ problem: { kind, text: kind === "gone" ? this.lament(error) : error.message } });
      if (kind === "gone") return Math.min(PULSE_MS * 2 ** this.failures, SLOWEST_RETRY_MS);
      return this.offline ? null : SLOWEST_RETRY_MS * 2;
    }

    patience({ building, num_rows }) {
      const { what, share } = building || { what: "reading what happened", share: 0 };
      const rows = num_rows ? ` of ${Cascade.format.count(num_rows)} rows` : "";
      return `this run${rows} is opened for the first time, which takes a while: ${what}, about ${Math.round(share * 100)} %`;
    }

    lament(error) {
      const since = new Date(this.silentSince);
      const clock = [since.getHours(), since.getMinutes(), since.getSeconds()].map((x) => Cascade.format.pad(x));
      const age = this.heard ? `; last data ${Cascade.format.duration(Math.round((Date.now() - this.heard) / 1000) * 1e9)} ago` : "";
      return `${error.message} since ${clock.join(":")}${age}; retrying`;
    }
  }

  return function watch(source, view, { offline = false } = {}) {
    if (!watchers.has(view)) watchers.set(view, new Watcher(source, view, offline));
    return watchers.get(view);
  };
})();
