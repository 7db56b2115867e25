/* Cascade.tables: pictures as tables, for readers of tables, screen readers and other programs. */
"use strict";

Cascade.tables = (() => {
  const { el, replace, format, ui } = Cascade;
  const MOST_ROWS = 500;
  const AGAIN_MS = 1000;

  /** One field of a CSV file; a text that a spreadsheet would take for a formula gets a quote mark first. */
  function field(value) {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }

  function csv(columns, rows) {
    return `${[columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;
  }

  const known = (value) => (value === null || value === undefined ? "–" : value);
  const percent = (value, none = "not measured") => (value === null || value === undefined ? none : `${format.number(value)}%`);

  /** Shares of the three regimes in words; they sum to 100 %, or "no row" where nobody was there. */
  function shareTexts(shares) {
    const parts = Cascade.REGIMES.map((name) => shares[name] || 0);
    const total = parts.reduce((a, b) => a + b, 0);
    if (!total) return ["no row", "", ""];
    return ui.roundTo100(parts.map((part) => part / total), 2).map((value) => `${value.toFixed(2)}%`);
  }

  function rankTable(answer, reading) {
    const seconds = (value) => secondsText(value, reading);
    const columns = [
      { label: "Rank", word: "rank" }, ...Cascade.REGIMES.map((name) => ({ label: name, word: name, num: true })),
      { label: "Waited", word: "waited", num: true }, { label: "Caused", word: "caused", num: true },
      { label: "GPU median", num: true }, { label: "GPU minimum", num: true }, { label: "CPU median", num: true },
    ];
    const none = answer.without ? "not in this file" : undefined;
    const cpu = (value) => (value !== null && value >= 100 ? "100% or more" : percent(value, none));
    const rows = answer.by_rank.map((row) => [
      row.rank, ...shareTexts(row.regimes), seconds(row.waited_s), seconds(row.caused_s),
      percent(row.gpu_median, none), percent(row.gpu_min, none), cpu(row.cpu_median),
    ]);
    if (answer.by_rank.length > 1) rows.push(["all ranks", ...shareTexts(answer.regime_share), ...total(answer, seconds), "", "", ""]);
    return ui.table(columns, rows, { empty: "no rank has a row in this window" });
  }

  /** Seconds of a wait; of one that is still being read nought says nothing, and more may come. */
  function secondsText(value, reading) {
    if (value === null || value === undefined) return "not measured";
    if (!reading) return format.seconds(value);
    return value === 0 ? "loading…" : `${format.seconds(value)} so far`;
  }

  function total(answer, seconds) {
    return ["waited_s", "caused_s"].map((name) => {
      const values = answer.by_rank.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
      return seconds(values.length ? values.reduce((a, b) => a + b, 0) : null);
    });
  }

  /** reading: of what is still being read a column says so. */
  function rankCsv(answer, reading) {
    const names = ["rank", ...Cascade.REGIMES.map((name) => `share_${name}`), "waited_s", "caused_s", "gpu_median_pct", "gpu_min_pct", "cpu_median_pct", ...(reading ? ["waits_are"] : [])];
    return csv(names, answer.by_rank.map((row) => [
      row.rank, ...Cascade.REGIMES.map((name) => row.regimes[name] || 0), row.waited_s, row.caused_s, row.gpu_median, row.gpu_min, row.cpu_median,
      ...(reading ? ["so far"] : []),
    ]));
  }

  const WHAT = {
    violation: "broken promise", departure: "left", health: "fault", gap: "rows missing", join: "joined",
  };

  /** What kind of thing a mark is, in words; a recovery is no fault. */
  function whatOf(mark) {
    return mark.kind === "health" && mark.severity === "info" ? "recovery" : WHAT[mark.kind] || mark.kind;
  }

  /** Walks, marks and debts inside [a, b], in time. */
  function happenings(story, a, b) {
    const who = (one) => (one.rank >= 0 ? ui.who(story, one.rank, one.incarnation) : null);
    const rows = [
      ...story.walks.map((walk) => ({ at_ns: walk.at_ns, kind: walk.from === walk.to ? "members change" : "regime change", who: story.groups.length > 1 ? `group ${walk.group}` : "all members", text: walk.sentence })),
      ...story.marks.filter((mark) => mark.kind !== "transition").map((mark) => ({ at_ns: mark.at_ns, kind: whatOf(mark), who: who(mark), text: mark.sentence })),
      ...story.debts.map((debt) => ({ at_ns: debt.opened_ns, kind: "debt opened", who: who(debt), text: `Debt ${debt.id}: gave up ${debt.relaxed || "a guarantee"} on ${debt.object || "every object"}` })),
      ...story.debts.filter((debt) => debt.closed_ns !== null).map((debt) => ({ at_ns: debt.closed_ns, kind: debt.fate === "written_off" ? "debt written off" : "debt settled", who: who(debt), text: `Debt ${debt.id}${debt.resolution ? `: ${debt.resolution}` : ""}` })),
    ];
    return rows.filter((row) => a <= row.at_ns && row.at_ns <= b).sort((x, y) => x.at_ns - y.at_ns);
  }

  /** A dialog with a title, a close button and a place for content. */
  function dialog(title) {
    const body = el("div", { class: "cr-body" });
    const head = el("div", { class: "cr-head" }, el("h2", { text: title, attrs: { id: "cascade-dialog-title" } }));
    const box = el("dialog", { class: "cr-dialog", attrs: { "aria-labelledby": "cascade-dialog-title" } }, head, body);
    const back = document.activeElement;
    const close = ui.button("Close", () => box.close());
    head.append(el("span", { class: "cr-push cr-row" }, close));
    box.addEventListener("close", () => {
      box.remove();
      if (back && back.isConnected) back.focus();
    });
    // Keys typed here are not for the timeline.
    box.addEventListener("keydown", (event) => event.stopPropagation());
    box.addEventListener("click", (event) => event.target === box && box.close());
    document.body.append(box);
    box.showModal();
    return { box, body, tools: head.lastChild, close };
  }

  /** What is to be known of the numbers. */
  function notes(story, answer, reading) {
    const { waits = {} } = story.measured || {};
    return [
      story.groups.length > 1 && answer.group ? `Regimes are those of group ${answer.group}.` : "",
      waits.why ? `Waits: ${waits.state === "not_measured" ? "not measured: " : ""}${waits.why}` : "",
      reading ? `Waits are not all in yet (${Cascade.unfinished.progress(reading)}): the numbers are of so far, and follow by themselves.` : "",
      !reading && answer.source === "provisional" ? "Waits are provisional: counted from rows as they come in; the analysis may still correct them." : "",
      answer.note || "",
    ].filter(Boolean);
  }

  /** What happened, in words, and the numbers by rank. */
  function drawn(view, { a, b, from_to, answer, reading }) {
    const { story } = view;
    const happened = happenings(story, a, b);
    const more = happened.length > MOST_ROWS ? `, showing ${MOST_ROWS} of ${format.count(happened.length)}` : "";
    return [
      el("p", { text: from_to }),
      notes(story, answer, reading).map((text) => el("p", { class: "cr-dim", text })),
      el("h3", { text: "By rank" }), ui.scroll("By rank", rankTable(answer, reading)),
      el("h3", { text: `What happened${more}` }),
      ui.scroll("What happened", ui.table(
        [{ label: "Time" }, { label: "What" }, { label: "Who" }, { label: "In words", wrap: true }],
        happened.slice(0, MOST_ROWS).map((row) => [format.time(row.at_ns, view), row.kind, known(row.who), row.text]),
        { empty: "nothing is marked in this window" },
      )),
    ];
  }

  /** The timeline's window as tables: by rank, and what happened. Resolves when numbers are there. Until all of them
   * are, they are asked for again while the dialog is open. */
  async function timeline(view, source) {
    const [a, b] = [Math.max(0, Math.round(view.a)), Math.min(Math.max(view.t1, 1), Math.round(view.b))];
    const { story } = view;
    const { box, body, tools, close } = dialog("Timeline as a table");
    const from_to = `From ${format.time(a, view)} to ${format.time(b, view)} (${format.duration(Math.max(0, b - a))})`;
    let got = null; // {answer, reading}
    let timer = 0;
    box.addEventListener("close", () => clearTimeout(timer));

    async function ask() {
      clearTimeout(timer);
      if (!got) replace(body, el("p", { text: from_to }), el("p", { class: "cr-dim", text: "loading…", attrs: { role: "status" } }));
      try {
        const answer = await source.window(a, b, { group: view.group });
        got = { answer, reading: answer.building || Cascade.unfinished.reading(view) };
      } catch (error) {
        const again = ui.button("Try again", ask);
        const said = el("p", { class: "cr-error", text: `The numbers did not come: ${error.message}`, attrs: { role: "alert" } });
        replace(body, el("p", { text: from_to }), said, again);
        got = null;
        return;
      }
      if (!box.isConnected) return;
      ui.redraw(body, () => replace(body, ...drawn(view, { a, b, from_to, ...got })));
      if (got.reading) timer = setTimeout(ask, AGAIN_MS);
    }

    await ask();
    const text = () => (got ? rankCsv(got.answer, got.reading) : "");
    tools.insertBefore(ui.copy("Copy as CSV", text), close);
    tools.insertBefore(ui.button("Save as CSV", () => got && ui.download(`${story.run.run_id}-${a}-${b}.csv`, text(), "text/csv")), close);
    return box;
  }

  return { timeline, csv, happenings, dialog };
})();
