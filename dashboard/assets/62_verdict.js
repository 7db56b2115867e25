/* Panel "verdict": the verdict line first, the facts of the run, what was checked, what comes next. */
"use strict";

Cascade.panels.verdict = (() => {
  const { el, replace, format, ui } = Cascade;
  const STALE_AFTER_S = 10;

  /** What is still being worked out, in words; the lanes concerned say it too. */
  function building(view) {
    const now = view.pulse && view.story.run.state !== "waiting" ? view.pulse.building : null;
    return now ? el("span", { class: "cr-badge" }, ui.icon("ring"), el("span", { text: ui.progress(now) })) : null;
  }

  function badge(view) {
    const { story, pulse } = view;
    const state = (pulse && pulse.state) || story.run.state;
    if (view.problem && (state === "live" || state === "waiting")) {
      return el("span", { class: "cr-badge cr-badge-stale" }, ui.icon("warn"), el("span", { text: "out of reach" }));
    }
    if (state === "live") {
      const age = pulse && pulse.last_row_age_s !== null && pulse.last_row_age_s !== undefined ? pulse.last_row_age_s : null;
      const stale = age !== null && age > STALE_AFTER_S;
      const rate = pulse && pulse.rows_per_s > 0 && !stale ? `, ${format.count(pulse.rows_per_s)} rows/s` : "";
      const text = age === null ? "live" : `live, last row ${age < 1 ? "under 1 s" : format.seconds(age)} ago${rate}`;
      return el("span", { class: `cr-badge ${stale ? "cr-badge-stale" : "cr-badge-live"}` }, ui.icon(stale ? "warn" : "ring"), el("span", { text }));
    }
    const words = {
      waiting: "waiting for the first row", ended: "ended", stopped: "stopped early", unclean: "still running or cut off",
    };
    const shape = state === "unclean" ? "warn" : ["ended", "stopped"].includes(state) ? "check" : "ring";
    return el("span", { class: `cr-badge${state === "unclean" ? " cr-badge-stale" : ""}` }, ui.icon(shape), el("span", { text: words[state] || state }));
  }

  function line(story) {
    const { verdict } = story;
    const of = ui.verdict(verdict.state);
    return [
      ui.icon(of.shape, of.tone),
      el("span", { class: `cr-verdict-word cr-tone-${of.tone}`, text: of.word }),
      el("span", { class: "cr-verdict-text", text: verdict.sentence, attrs: { "aria-live": "polite" } }),
    ];
  }

  /** Share of the time of all ranks in each regime of one group: [S, C, E], sums to 1 (or all 0). */
  function shares(regimes, group) {
    const sum = [0, 0, 0];
    const { regime, start_ns, end_ns } = regimes;
    for (const [begin, end] of Cascade.rankRanges(regimes, group).values()) {
      for (let i = begin; i < end; i += 1) if (end_ns[i] > start_ns[i]) sum[regime[i]] += end_ns[i] - start_ns[i];
    }
    const total = sum[0] + sum[1] + sum[2];
    return total ? sum.map((part) => part / total) : sum;
  }

  /** Percentages with `places` decimals that sum to exactly 100: the largest remainders get the rest. */
  function roundTo100(parts, places = 1) {
    const unit = 10 ** places;
    const exact = parts.map((part) => part * 100 * unit);
    const whole = exact.map(Math.floor);
    let rest = Math.round(exact.reduce((a, b) => a + b, 0)) - whole.reduce((a, b) => a + b, 0);
    const order = exact.map((value, i) => [value - whole[i], i]).sort((x, y) => y[0] - x[0]);
    for (const [, i] of order) {
      if (rest <= 0) break;
      whole[i] += 1;
      rest -= 1;
    }
    return whole.map((value) => value / unit);
  }

  /** A figure that may still change says so beside its name; over it, why. */
  function soFar(why) {
    return why ? el("span", { class: "cr-sofar", text: "so far", attrs: { title: `not final: ${why}` } }) : null;
  }

  function shareFact(view, offline) {
    const { story, group } = view;
    const parts = shares(story.regimes, group);
    const why = Cascade.unfinished.why(view);
    if (!parts.some((part) => part > 0)) return fact(Cascade.word("regime", "Regimes"), why ? "no row yet" : "no row");
    const percents = roundTo100(parts);
    const words = [];
    const bar = el("span", { class: "cr-shares", attrs: { "aria-hidden": "true" } });
    Cascade.REGIMES.forEach((name, i) => {
      if (!parts[i]) return;
      const piece = el("span", { class: `cr-bg-${ui.CLASS_OF[name]}` });
      piece.style.flex = `${parts[i]} 0 2px`;
      bar.append(piece);
      // A part that is there is never rounded to nothing, nor the whole to all.
      const text = percents[i] === 0 ? "<0.1%" : percents[i] === 100 && parts[i] < 1 ? ">99.9%" : `${percents[i].toFixed(1)}%`;
      words.push(`${name} ${text}`);
    });
    const title = el("span", {}, Cascade.word("regime", "Time in each regime"), story.groups.length > 1 ? ` (${group})` : "");
    return fact(title, el("span", {}, words.join(", "), ui.sqlLink(story, "regime_share", offline, "the regime shares"), bar), "", why);
  }

  function wasteFact(view, offline) {
    const { waits } = view.story;
    const why = Cascade.unfinished.whyWaits(view);
    const title = Cascade.word("wasted barrier time", "Wasted at barriers");
    if (!waits) return fact(title, why || view.story.verdict.judged_upto_ns === null ? "not known yet" : "no wait recorded");
    if (waits.refused) return fact(title, "not measured", waits.refused);
    const wasted = waits.exposed_rank_s === null || waits.exposed_rank_s === undefined ? waits.total_rank_s : waits.exposed_rank_s;
    const base = waits.share_pct > 0 ? waits.total_rank_s / (waits.share_pct / 100) : null;
    const of = base ? `${format.percent(waits.share_pct / 100)} of ${format.number(base)} rank-seconds` : "";
    return fact(title, el("span", {}, `${format.number(wasted)} `, Cascade.word("rank-seconds"), ui.sqlLink(view.story, "waits", offline, "the waits")),
      [of, waits.source === "provisional" ? "provisional" : ""].filter(Boolean).join(", "), why);
  }

  function debtFact(view, offline) {
    const { debts } = view.story;
    const open = debts.filter((debt) => debt.closed_ns === null).length;
    const text = debts.length ? `${format.count(debts.length)} opened, ${open ? `${format.count(open)} open` : "none open"}` : "none";
    return fact(Cascade.word("debt", "Debt"), el("span", {}, text, ui.sqlLink(view.story, "debts", offline, "the debts")), "", Cascade.unfinished.why(view));
  }

  /** why: the figure is of so far, and why; "" where it is final. */
  function fact(title, value, small, why, more = "") {
    return el("div", { class: `cr-fact ${more}`.trim() },
      el("dt", {}, title, soFar(why)),
      el("dd", {}, value, small ? el("small", { text: small }) : null));
  }

  function facts(view, offline) {
    const { story } = view;
    const { run } = story;
    const why = Cascade.unfinished.why(view);
    const mode = Object.hasOwn(Cascade.words, run.mode) ? Cascade.word(run.mode) : run.mode;
    return [
      // The head of the page has its name; a report has no head.
      offline && run.name ? fact("Run", run.name, run.name === run.run_id ? "" : run.run_id) : fact("Run", run.run_id, "", "", "cr-fact-run"),
      fact("Mode", el("span", {}, mode, run.policy && run.policy !== "default" ? el("small", { text: `policy ${run.policy}` }) : null)),
      fact(Cascade.word("took part", "Took part"), ui.party(story), "", story.missing.length ? why : ""),
      fact("Duration", format.duration(story.t1_ns), `${format.count(run.num_rows)} rows`, why),
      shareFact(view, offline),
      wasteFact(view, offline),
      debtFact(view, offline),
      fact(Cascade.word("violation", "Violations"), el("span", {}, format.count(story.verdict.num_violations), ui.sqlLink(story, "violations", offline, "the violations")),
        story.verdict.num_inferred ? `and ${format.count(story.verdict.num_inferred)} inferred` : "", why),
    ];
  }

  function checks(story) {
    const ORDER = ["violated", "unknown", "pending", "ok", "not_checked"];
    const verdictOf = (check) => (check.is_pending ? "pending" : check.verdict);
    const rows = [...story.verdict.checks].sort((x, y) => ORDER.indexOf(verdictOf(x)) - ORDER.indexOf(verdictOf(y)));
    const count = (name) => rows.filter((row) => verdictOf(row) === name).length;
    const summary = ORDER.filter(count).map((name) => `${count(name)} ${ui.verdict(name).word}`).join(", ");
    return el("details", {},
      el("summary", { text: `What was checked: ${summary}` }),
      story.verdict.detail.map((text) => el("p", { text })),
      ui.scroll("What was checked", ui.table(
        [{ label: "Code" }, { label: "Rule" }, { label: "Verdict" }, { label: "Checked", num: true }, { label: "Violations", num: true }, { label: "Why", wrap: true }],
        rows.map((c) => [c.code, c.name, ui.sign(ui.verdict(verdictOf(c))), format.count(c.num_checked), format.count(c.num_violations), c.is_pending ? `so far: ${c.reason}` : c.reason]),
      )));
  }

  /** What is known of a run before its first row. */
  function announced({ run }) {
    const mode = Object.hasOwn(Cascade.words, run.mode) ? Cascade.word(run.mode) : run.mode;
    return [
      fact("Run", run.run_id), fact("Mode", mode), fact("Policy", run.policy || "not said"),
      fact("Expected", `${format.count(run.world_size)} ranks and agents`), fact("Rows", "none yet"),
    ];
  }

  /** What a person can do while nothing comes. */
  function nextActs({ run }) {
    const code = (text) => el("code", { class: "cr-code", text });
    const { origin } = window.location;
    return [
      el("h3", { text: "If nothing comes" }),
      el("ul", {},
        el("li", {}, "Start the job, so that it sends its rows here: ", code(`cascade run --collector ${origin} -n 4 SCRIPT`)),
        el("li", {}, "If it runs already, look at its terminal: a host agent says there when it cannot reach this collector. ", code("cascade doctor"), " on that host tells more."),
        el("li", {}, "If its trace was saved, send it: ", code(`cascade push TRACE ${origin}`), `; the trace must be of the run ${run.run_id}.`)),
    ];
  }

  Object.assign(Cascade.ui, { shares, roundTo100 });

  return function verdict(element, { view, offline = false }) {
    const top = el("div", { class: "cr-verdict-line" });
    const badges = el("div", { class: "cr-badges" });
    const list = el("dl", { class: "cr-facts" });
    const details = el("div", { class: "cr-checks" });
    const acts = el("div", { class: "cr-section cr-acts", attrs: { hidden: true } });
    const heading = el("h2", { class: "cr-sr", text: "Verdict", attrs: { id: "cascade-h-verdict" } });
    const root = el("section", { class: "cr-panel", attrs: { "aria-labelledby": "cascade-h-verdict" } }, heading, top, list, acts, details);
    const { keep, destroy } = ui.cleanup(root);
    let told = "";
    let why = ""; // the figures that are shown are not final, without how far

    function badgeAgain() {
      if (view.story) replace(badges, building(view), badge(view));
    }

    /** What the pulse says may make figures final, or again not. */
    function pulsed() {
      const now = Cascade.unfinished.reading(view);
      if (view.story && (now ? now.what : Cascade.unfinished.why(view)) !== why) ui.redraw(root, draw);
      else badgeAgain();
    }

    function draw() {
      const { story } = view;
      if (!story) {
        replace(top, ui.icon("ring", "dim"), el("span", { class: "cr-verdict-text", text: "Reading the run…" }));
        list.hidden = details.hidden = true;
        return;
      }
      const waiting = story.run.state === "waiting";
      // The sentence is announced when it changes, not at each refresh.
      const said = `${story.verdict.state}|${story.verdict.sentence}|${waiting}`;
      if (said !== told) replace(top, waiting ? waitingLine(story) : line(story), badges);
      told = said;
      badgeAgain();
      const now = Cascade.unfinished.reading(view);
      why = now ? now.what : Cascade.unfinished.why(view);
      list.hidden = false;
      replace(list, waiting ? announced(story) : facts(view, offline));
      acts.hidden = !waiting || story.plan.length > 0;
      if (!acts.hidden) replace(acts, nextActs(story));
      const wasOpen = details.querySelector("details") && details.querySelector("details").open;
      details.hidden = waiting || !story.verdict.checks.length;
      if (!details.hidden) {
        replace(details, checks(story));
        details.querySelector("details").open = wasOpen === true;
      }
    }

    function waitingLine(story) {
      // A run that says what will happen is a demo's: its job is on its way.
      if (story.plan.length) {
        return [
          ui.icon("ring", "dim"),
          el("span", { class: "cr-verdict-text", text: "Waiting for the demo's first row: its ranks are being started, which takes some seconds." }),
        ];
      }
      return [
        ui.icon("ring", "dim"),
        el("span", { class: "cr-verdict-text", text: "Waiting for the first row. This page fills by itself." }),
      ];
    }

    keep(view.on("story", () => ui.redraw(root, draw)));
    keep(view.on("pulse", pulsed));
    keep(view.on("problem", badgeAgain));
    keep(view.on("group", draw));
    draw();
    element.append(root);
    return { destroy };
  };
})();
