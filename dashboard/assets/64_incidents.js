/* Panel "incidents": what a person should look at, worst first; choosing one moves window and cursor. */
"use strict";

Cascade.panels.incidents = (() => {
  const { el, replace, format, ui } = Cascade;
  const MOST = 50;
  const SEEN = 24; // px of an item by which one knows that it is there

  const filters = new WeakMap(); // view -> what stands in its filter box
  const { incidentSel: selOf } = Cascade.seek;

  /** Shows an incident: its window, the cursor at its time, its selection. */
  function choose(view, incident) {
    view.set({ playing: false });
    Cascade.seek.select(view, selOf(incident));
    view.seek(incident.at_ns);
    if (Number.isFinite(incident.a_ns) && Number.isFinite(incident.b_ns)) view.show(incident.a_ns, incident.b_ns);
  }

  function matches(incident, words) {
    const text = `${incident.title} ${incident.sentence} ${incident.kind} ${incident.severity} ${incident.id}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function visible(view) {
    const all = view.story ? view.story.incidents : [];
    const words = (filters.get(view) || "").toLowerCase().split(/\s+/).filter(Boolean);
    return words.length ? all.filter((incident) => matches(incident, words)) : all;
  }

  function move(view, by) {
    const list = visible(view);
    if (!list.length) return false;
    const at = list.findIndex((incident) => selOf(incident) === view.sel);
    const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : at + by;
    if (next < 0 || next >= list.length) return false;
    choose(view, list[next]);
    return true;
  }

  /** Nothing to look at: what was looked through, with numbers. */
  function emptyWords(story) {
    const { verdict, run } = story;
    if (run.state === "waiting") return "No row yet. Incidents appear here as they happen.";
    if (verdict.state === "judging" || verdict.state === "none") {
      return verdict.judged_upto_ns === null ? "Nothing so far. The run has not been judged yet." : "Nothing so far: not all rows are judged yet.";
    }
    const done = verdict.checks.filter((c) => c.verdict === "ok" || c.verdict === "violated");
    const most = done.reduce((sum, c) => Math.max(sum, c.num_checked), 0);
    const open = verdict.checks.filter((c) => c.verdict === "unknown").length;
    const unknown = open ? ` ${Cascade.plural(open, "check")} could not be decided: see the verdict.` : "";
    return `${format.count(verdict.num_violations)} violations in ${Cascade.plural(done.length, "check")}, ` +
      `the widest over ${format.count(most)} rows; nothing to look at.${unknown}`;
  }

  function item(view, incident) {
    const of = ui.severity(incident.severity);
    const whole = incident.at_ns <= 0 && incident.end_ns >= view.story.t1_ns;
    return el("li", {}, el("button", {
      class: "cr-incident",
      attrs: { type: "button", "data-id": incident.id, "data-key": incident.id, "aria-current": selOf(incident) === view.sel },
      on: { click: () => choose(view, incident) },
    },
    ui.icon(of.shape, of.tone),
    el("span", { class: "cr-incident-title" }, el("span", { class: "cr-sr", text: `${of.word}: ` }), incident.title),
    el("span", { class: "cr-incident-text" },
      el("span", { class: "cr-incident-time", text: whole ? "whole run" : format.time(incident.at_ns, view) }),
      incident.sentence === incident.title ? null : ` ${incident.sentence}`)));
  }

  function incidents(element, { view, offline = false }) {
    const { root, head, body } = ui.panel(Cascade.word("incident", "Incidents"), "incidents");
    const { keep, destroy } = ui.cleanup(root);
    const count = el("span", { class: "cr-dim" });
    const sql = el("span", { class: "cr-push" });
    head.append(count, sql);
    const filter = el("input", {
      class: "cr-input",
      attrs: { type: "search", placeholder: "Filter: rank 2, C1, CAUSAL…", "aria-label": "Filter incidents" },
      on: { input: () => { filters.set(view, filter.value); draw(); } },
    });
    const bar = el("div", { class: "cr-filter" }, filter);
    const list = el("ol", { class: "cr-list", attrs: { "aria-label": "Incidents, worst first" } });
    const foot = el("div", { class: "cr-foot", attrs: { role: "status" } });
    root.classList.add("cr-incidents");
    body.remove();
    const below = el("button", {
      class: "ct-button cr-further", attrs: { type: "button", hidden: true }, on: { click: () => list.scrollBy(0, list.clientHeight * 0.8) },
    });
    root.append(bar, el("div", { class: "cr-list-box" }, list, below), foot);
    let wide = false;

    function draw() {
      const { story } = view;
      if (!story) return;
      const all = story.incidents;
      const found = visible(view);
      const shown = wide ? found : found.slice(0, MOST);
      count.textContent = all.length > 1 ? `${format.count(all.length)}, worst first` : all.length ? "1" : "";
      bar.hidden = all.length < 2;
      replace(sql, ui.sqlLink(story, "incidents", offline, "what the incidents are made of, in time"));
      replace(list, shown.map((incident) => item(view, incident)));
      if (!all.length) replace(list, el("li", { class: "cr-empty", text: emptyWords(story) }));
      else if (!found.length) replace(list, el("li", { class: "cr-empty", text: `None of ${format.count(all.length)} has all of these words.` }));
      foot.hidden = shown.length === found.length && found.length === all.length;
      replace(foot, `showing ${format.count(shown.length)} of ${format.count(found.length)}${found.length < all.length ? ` (${format.count(all.length)} unfiltered) ` : " "}`,
        shown.length < found.length ? ui.button("Show all", () => { wide = true; draw(); }) : null);
      sayBelow();
    }

    /** Says how many are out of sight below, so that nobody takes the first ones for all. */
    function sayBelow() {
      const edge = list.getBoundingClientRect().bottom;
      const hidden = [...list.children].filter((item) => item.getBoundingClientRect().top + SEEN > edge).length;
      below.hidden = !hidden;
      below.textContent = `↓ ${format.count(hidden)} more`;
    }

    /** Marks the chosen one and brings it into sight. */
    function mark() {
      for (const button of list.querySelectorAll(".cr-incident")) {
        const incident = view.story.incidents.find((i) => i.id === button.dataset.id);
        const current = Boolean(incident) && selOf(incident) === view.sel;
        button.setAttribute("aria-current", String(current));
        if (!current) continue;
        const box = list.getBoundingClientRect();
        const at = button.getBoundingClientRect();
        if (at.top < box.top || at.bottom > box.bottom) list.scrollTop += at.top - box.top - 8;
      }
    }

    for (const name of ["story", "clock"]) keep(view.on(name, () => ui.redraw(root, draw)));
    keep(view.on("select", mark));
    list.addEventListener("scroll", sayBelow, { passive: true });
    const resizes = new ResizeObserver(sayBelow);
    resizes.observe(list);
    keep(() => resizes.disconnect());
    element.append(root);
    draw();
    return { destroy };
  }

  incidents.next = (view) => move(view, 1);
  incidents.prev = (view) => move(view, -1);
  incidents.choose = choose;
  incidents.visible = visible;
  return incidents;
})();
