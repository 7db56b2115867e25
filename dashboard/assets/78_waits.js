/* Panel "waits": who waited for whom, for how long and why. */
"use strict";

Cascade.panels.waits = (() => {
  const { el, replace, format, ui } = Cascade;
  const MOST_PAIRS = 50;
  const MOST_RANKS = 64;

  function bar(value, most, caused) {
    const piece = el("span", { class: `cr-bar${caused ? " cr-bar-caused" : ""}`, attrs: { "aria-hidden": "true" } });
    // What is there is never drawn as nothing.
    piece.style.width = value > 0 ? `max(1px, ${((value / most) * 100).toFixed(1)}%)` : "0";
    return el("span", { class: "cr-bar-box" }, piece);
  }

  /** Blame is what an analysis finds; before that it is only known who came last. */
  function byRank(waits, view) {
    const [name, word] = waits.source === "judged" ? ["blamed_s", "blamed"] : ["last_s", "came last"];
    const rows = [...waits.by_rank].sort((x, y) => y[name] - x[name]).slice(0, MOST_RANKS);
    const most = Math.max(0, ...rows.map((row) => Math.max(row.waited_s, row[name])));
    const more = waits.by_rank.length > rows.length ? `, showing ${rows.length} of ${format.count(waits.by_rank.length)}` : "";
    const cell = (value, caused) => el("span", { class: "cr-bar-line" }, el("span", { text: format.seconds(value) }), bar(value, most, caused));
    return [
      el("h3", { text: `By rank, ${name === "blamed_s" ? "most blamed" : "longest last"} first${more}` }),
      ui.scroll("Waits by rank", ui.table(
        [{ label: "Rank", word: "rank" }, { label: "Waited", word: "waited" }, { label: ui.capital(word), word }],
        rows.map((row) => [rankButton(row.rank, view), cell(row.waited_s, false), cell(row[name], true)]),
      )),
    ];
  }

  function rankButton(rank, view) {
    return el("button", {
      class: "cw-plain", text: `rank ${rank}`, attrs: { type: "button", title: "select this rank", "data-key": `rank ${rank}` },
      on: { click: () => view.set({ sel: `rank:${rank}` }) },
    });
  }

  function pairs(waits, view) {
    const rows = waits.pairs.slice(0, MOST_PAIRS);
    if (!rows.length) return null;
    const total = waits.total_rank_s;
    const table = ui.table(
      [{ label: "Caused by", word: "caused" }, { label: "Who waited", word: "waited" }, { label: "Time", num: true }, { label: "Share", num: true }, { label: "Times", num: true }, { label: "Cause" }],
      rows.map((pair) => [
        el("button", {
          class: "cw-plain", text: `rank ${pair.caused_by}`, attrs: { type: "button", title: "select this pair", "data-key": selOf(pair) },
          on: { click: () => view.set({ sel: selOf(pair) }) },
        }),
        `rank ${pair.waited}`, format.seconds(pair.wait_s), total > 0 ? format.percent(pair.wait_s / total) : "", format.count(pair.num), pair.cause,
      ]),
    );
    table.querySelectorAll("tbody tr").forEach((line, i) => line.setAttribute("aria-current", String(selOf(rows[i]) === view.sel)));
    const more = waits.pairs.length > rows.length ? `, showing ${rows.length} of ${format.count(waits.pairs.length)}` : "";
    return [el("h3", { text: `Who waited for whom, longest first${more}` }), ui.scroll("Who waited for whom", table)];
  }

  const selOf = (pair) => `wait:${pair.caused_by}:${pair.waited}`;

  /** What a chosen pair says in one sentence. */
  function chosen(waits, sel) {
    const pair = waits.pairs.find((one) => selOf(one) === sel);
    if (!pair) return null;
    return `Rank ${pair.waited} waited ${format.seconds(pair.wait_s)} for rank ${pair.caused_by}, in ${Cascade.plural(pair.num, "collective")}${pair.cause ? `; cause: ${pair.cause}` : ""}.`;
  }

  function facts(waits) {
    const judged = waits.source === "judged";
    const parts = [Cascade.word(waits.source, judged ? "judged" : "provisional")];
    if (Object.hasOwn(Cascade.words, waits.kind)) parts.push(", ", Cascade.word(waits.kind), " waits");
    if (waits.share_pct > 0) parts.push(`, ${format.percent(waits.share_pct / 100, `${format.number(waits.total_rank_s / (waits.share_pct / 100))} rank-seconds`)}`);
    if (waits.joules !== null && waits.joules !== undefined) parts.push(`, ${format.number(waits.joules)} J drawn meanwhile`);
    return el("p", { class: "cr-dim" }, parts);
  }

  return function waits(element, { view, offline = false }) {
    const { root, head, body } = ui.panel("Waits", "waits");
    const { keep, destroy } = ui.cleanup(root);
    const sql = el("span", { class: "cr-push" });
    head.append(sql);

    function draw() {
      const { story } = view;
      root.hidden = !story || story.run.state === "waiting";
      if (root.hidden) return;
      const found = story.waits;
      replace(sql, ui.sqlLink(story, "waits", offline, "the waits"));
      if (!found) {
        replace(body, el("p", { class: "cr-dim", text: story.verdict.judged_upto_ns === null
          ? "Who waited for whom is not known yet: it is told once collectives were recorded and read."
          : "No collective in which a rank waited was recorded in this run." }));
        return;
      }
      if (found.refused && !found.by_rank.length) {
        replace(body, el("p", {}, ui.icon("question", "unknown"), ` Not measured: ${found.refused}`));
        return;
      }
      const pair = chosen(found, view.sel);
      const { chronic } = found;
      replace(body,
        el("p", { class: "cr-claim", text: found.sentence }), facts(found),
        found.refused ? el("p", {}, ui.icon("question", "unknown"), ` Not all is measured: ${found.refused}`) : null,
        chronic ? el("p", {}, ui.icon("warn", "warn"), ` Rank ${chronic.rank} is a `, Cascade.word("straggler", "chronic straggler"), `: the largest share of the blame in ${format.percent(chronic.share_of_steps)} of the steps that have waits.`) : null,
        pair ? el("p", { class: "cr-picked", text: pair, attrs: { role: "status" } }) : null,
        byRank(found, view), pairs(found, view));
    }

    for (const name of ["story", "select"]) keep(view.on(name, () => ui.redraw(root, draw)));
    draw();
    element.append(root);
    return { destroy };
  };
})();
