/* Panel "state": who is where at the cursor's time: lattice, table of ranks, open debt. */
"use strict";

Cascade.panels.state = (() => {
  const { el, replace, format, ui, throttle } = Cascade;
  const ASK_MS = 125; // at most 8 questions a second
  // While the view follows a live run, whose rows share the server's cores with the answer: a second, and so many
  // times what the last answer took. A walk is asked for at once.
  const FOLLOW_MS = 1000;
  const FOLLOW_SHARE = 5;
  const STALE_MS = 400;
  const MOST_DEBTS = 100;
  const SHOWN_CLOCK = 8;

  const COLUMNS = [
    { label: "Rank", word: "rank" }, { label: "State" }, { label: "Regime", word: "regime" }, { label: "Since", num: true },
    { label: "Epoch", word: "epoch", num: true }, { label: "Cohort", word: "cohort", num: true }, { label: "Step", word: "step", num: true },
    { label: "Lag", word: "lag", num: true }, { label: "In flight", word: "in flight", num: true }, { label: "Debt", word: "debt", num: true },
    { label: "GPU", word: "GPU utilisation", num: true }, { label: "CPU", word: "process CPU busy", num: true }, { label: "Clock", word: "clock" },
  ];
  // What is marked when it changed; step, lag and utilisation change all the time.
  const MARKED = new Set([1, 2, 4, 5, 8, 9]);
  const CLOCK = COLUMNS.length - 1;

  const STATES = { present: "present", not_yet: "not there yet", gone: "gone", silent: "silent" };

  function regimeName(value) {
    return typeof value === "number" ? Cascade.REGIMES[value] : value;
  }

  function clockText(clock) {
    if (!clock || !clock.length) return "";
    const words = clock.map(([rank, incarnation, counter]) => `${rank}${incarnation ? `.${incarnation}` : ""}:${counter}`);
    return words.length <= SHOWN_CLOCK ? words.join(" ") : `${words.slice(0, 3).join(" ")} … (${words.length} ranks)`;
  }

  const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(value)}%`);
  const plain = (value) => (value === null || value === undefined ? "–" : format.count(value));

  /** The cells of one rank as texts (the first: its name). */
  function cells(row, t) {
    const here = row.state === "present";
    const gone = row.end ? `${STATES[row.state] || row.state} (${row.end})` : STATES[row.state] || String(row.state);
    return [
      ui.actor(row.rank, row.incarnation), gone, here && row.regime !== null ? regimeName(row.regime) : "",
      here && Number.isFinite(row.since_ns) ? format.duration(Math.max(0, t - row.since_ns)) : "–",
      here ? plain(row.epoch) : "–", here ? plain(row.cohort) : "–", plain(row.step),
      here ? plain(row.lag_steps) : "–", plain(row.num_in_flight), plain(row.open_debt), percent(row.gpu), row.cpu >= 100 ? "100% or more" : percent(row.cpu), clockText(row.clock),
    ];
  }

  /** Which columns say something: of a kind that was not measured its lane says why. */
  function columnsOf(story) {
    const measured = story.measured || {};
    const silent = (label) => (measured[label.toLowerCase()] || {}).state === "not_measured";
    return COLUMNS.map((column, i) => i).filter((i) => !["GPU", "CPU"].includes(COLUMNS[i].label) || !silent(COLUMNS[i].label));
  }

  function openDebts(story, t) {
    return story.debts.filter((debt) => debt.opened_ns <= t && (debt.closed_ns === null || debt.closed_ns > t));
  }

  function debtTable(story, t) {
    const open = openDebts(story, t);
    const waits = open.some((debt) => debt.waits_for);
    const columns = [
      { label: "Debt", word: "debt" }, { label: "Gave up" }, { label: "Object" }, { label: "Age", num: true },
      { label: "In flight", word: "in flight", num: true }, ...(waits ? [{ label: "Waits for", wrap: true }] : []), { label: "Later", wrap: true },
    ];
    const rows = open.slice(0, MOST_DEBTS).map((debt) => [
      debt.id, debt.relaxed, debt.object || "every object", format.duration(t - debt.opened_ns), plain(debt.num_in_flight),
      ...(waits ? [debt.waits_for || ""] : []), fate(debt, t),
    ]);
    const more = open.length > MOST_DEBTS ? `, showing ${MOST_DEBTS} of ${format.count(open.length)}` : "";
    return [
      el("h3", {}, Cascade.word("debt", "Open debt"), `: ${open.length ? format.count(open.length) : "none"}${more}`),
      rows.length ? ui.scroll("Open debt", ui.table(columns, rows)) : null,
    ];
  }

  function fate(debt, t) {
    if (debt.closed_ns === null) return "still open at the end of the rows";
    const word = debt.fate === "written_off" ? "written off" : debt.fate || "closed";
    return `${word} in ${format.duration(debt.closed_ns - t)}${debt.resolution ? ` (${debt.resolution})` : ""}`;
  }

  function state(element, { source, view }) {
    const { root, head, body } = ui.panel("State at the cursor", "state");
    const { keep, destroy } = ui.cleanup(root);
    const at = el("span", { class: "cr-mono" });
    const status = el("span", { class: "cr-dim cr-push", attrs: { role: "status" } });
    head.append(at, status);
    const lattice = el("div");
    const box = el("div", {}, el("p", { class: "cr-dim", text: "loading…" })); // until the first answer
    const debts = el("div");
    body.append(lattice, box, debts);
    const picture = Cascade.lattice(lattice, view);
    let busy = false;
    let again = false;
    let gone = false;
    let shown = null; // {t, cells: Map(actor -> texts)}
    let late = 0;
    let pace = { at: -Infinity, took: 0, walks: -1 }; // of the last question
    let later = 0;

    async function fetchState() {
      if (gone || !view.story) return;
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      pace = { at: performance.now(), took: pace.took, walks: view.story.walks.length };
      late = late || setTimeout(() => { status.textContent = "updating…"; box.setAttribute("aria-busy", "true"); }, STALE_MS);
      try {
        const answer = await source.state(Math.round(view.t));
        if (!gone) drawTable(answer);
        status.textContent = answer.note || "";
      } catch (error) {
        replace(status, shown ? `showing ${format.time(shown.t, view)}: ${error.message} ` : `${error.message} `, ui.button("Try again", fetchState));
      } finally {
        busy = false;
        pace.took = performance.now() - pace.at;
        clearTimeout(late);
        late = 0;
        box.removeAttribute("aria-busy");
        if (again && !gone) {
          again = false;
          askInTime();
        }
      }
    }
    const ask = throttle(fetchState, ASK_MS);

    /** At once for a reader who moves; at its own pace for a view that follows. */
    function askInTime() {
      clearTimeout(later);
      later = 0;
      const isCalm = view.follow && shown !== null && view.story.walks.length === pace.walks;
      const wait = isCalm ? pace.at + Math.max(FOLLOW_MS, FOLLOW_SHARE * pace.took) - performance.now() : 0;
      if (wait > 0) later = setTimeout(ask, wait);
      else ask();
    }

    function drawTable(answer) {
      const moved = shown === null || shown.t !== answer.t_ns;
      const texts = new Map(answer.ranks.map((row) => [row.rank, cells(row, answer.t_ns)]));
      const before = moved ? shown : shown.before;
      const shownColumns = columnsOf(view.story);
      const rows = answer.ranks.map((row) => shownColumns.map((i) => decorate(texts.get(row.rank)[i], i, row)));
      const table = ui.table(shownColumns.map((i) => COLUMNS[i]), rows, { empty: "no rank has a row at this time" });
      table.querySelectorAll("tbody tr").forEach((line, r) => {
        if (!answer.ranks.length) return;
        const { rank } = answer.ranks[r];
        line.dataset.rank = rank;
        const old = before ? before.cells.get(rank) : null;
        if (old) shownColumns.forEach((i, place) => {
          if (MARKED.has(i) && texts.get(rank)[i] !== old[i]) {
            line.children[place].classList.add("cr-changed");
            line.children[place].title = `was ${old[i] || "empty"}`;
          }
        });
      });
      ui.redraw(box, () => replace(box, ui.scroll("Ranks at the cursor", table)));
      shown = { t: answer.t_ns, cells: texts, before: before ? { cells: before.cells } : null };
      mark();
    }

    function decorate(text, i, row) {
      if (i === 0) {
        return el("button", {
          class: "cw-plain", text,
          attrs: { type: "button", "data-key": `rank ${row.rank}`, title: "select this rank" },
          on: { click: () => view.set({ sel: `rank:${row.rank}` }) },
        });
      }
      if (i === 2 && text) return ui.regime(text);
      if (i === CLOCK) {
        const full = (row.clock || []).map(([rank, incarnation, counter]) => `${rank}.${incarnation}:${counter}`).join(" ");
        return el("span", { class: "cr-mono", text, attrs: { title: full || null } });
      }
      return text;
    }

    function mark() {
      for (const line of box.querySelectorAll("tr[data-rank]")) {
        line.setAttribute("aria-current", String(view.sel === `rank:${line.dataset.rank}`));
      }
    }

    function moved() {
      at.textContent = format.time(view.t, view);
      if (!view.story) return;
      picture.draw();
      drawDebts();
      askInTime();
    }

    const drawDebts = throttle(() => { if (!gone && view.story) ui.redraw(debts, () => replace(debts, debtTable(view.story, view.t))); }, ASK_MS);

    keep(view.on("cursor", moved));
    keep(view.on("story", moved));
    keep(view.on("clock", moved));
    keep(view.on("group", moved));
    keep(view.on("select", mark));
    keep(() => { gone = true; ask.cancel(); drawDebts.cancel(); [late, later].forEach(clearTimeout); });
    moved();
    element.append(root);
    return { destroy };
  }

  state.openDebts = openDebts;
  return state;
})();
