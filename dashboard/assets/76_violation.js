/* Panel "violation": the sentence, its numbered steps, the picture, the evidence; a list when there are many. */
"use strict";

Cascade.panels.violation = (() => {
  const { el, replace, format, ui } = Cascade;
  const MOST_LISTED = 100;

  function selected(view) {
    const found = view.story ? Cascade.seek.find(view.story, view.sel) : null;
    return found && found.kind === "violation" ? found.item : null;
  }

  /** The text one pastes into a report of the fault. */
  function asText(violation, view) {
    const steps = violation.steps.map((step, i) => {
      const at = Number.isFinite(step.at_ns) ? ` (${format.sinceStart(step.at_ns)})` : "";
      return `${i + 1}. ${step.text}${at}${step.edge ? ` [${step.edge}]` : ""}`;
    });
    return [
      `${violation.code} ${violation.name}: ${violation.sentence}`, ...steps,
      `Run ${view.story.run.run_id}, ${ui.who(view.story, violation.rank, violation.incarnation)}, seq ${violation.seq}, ` +
      `group ${violation.group}, epoch ${violation.epoch}, regime ${violation.regime || "not recorded"}.`,
    ].join("\n");
  }

  function move(view, by) {
    const list = view.story.violations;
    const now = list.indexOf(selected(view));
    const next = list[now + by];
    if (next) Cascade.seek.select(view, `violation:${next.id}`, { show: true });
  }

  function goTo(view, index) {
    view.set({ step: index });
    const at = selected(view).steps[index].at_ns;
    if (Number.isFinite(at)) view.seek(at);
  }

  function steps(violation, view) {
    return el("ol", { class: "cr-steps", attrs: { "aria-label": "Steps" } }, violation.steps.map((step, i) => el("li", {}, el("button", {
      attrs: { type: "button", "aria-current": i === view.step ? "step" : null, "data-step": i, "data-key": `step ${i}` },
      on: { click: () => goTo(view, i) },
    },
    el("span", { class: "cr-step-no", text: i + 1 }),
    el("span", {}, step.text, step.edge ? el("span", { class: "cr-dim", text: ` (${step.edge})` }) : null),
    el("span", { class: "cr-dim", text: Number.isFinite(step.at_ns) ? format.time(step.at_ns, view) : "no time" })))));
  }

  function facts(violation, view) {
    const parts = [
      ui.sign(ui.severity(violation.severity)), el("span", { class: "cr-code", text: violation.code }), el("span", { text: violation.name }),
      el("span", { class: "cr-dim" }, "at ", ui.who(view.story, violation.rank, violation.incarnation), ", ", Cascade.word("seq"), ` ${violation.seq}`),
      el("span", { class: "cr-dim" }, Cascade.word("regime", "regime then"), ": "),
      violation.regime ? ui.regime(violation.regime) : el("span", { text: "not recorded" }),
      el("span", { class: "cr-dim", text: `epoch ${violation.epoch === null ? "not recorded" : violation.epoch}${violation.group === "world" ? "" : ` of ${violation.group}`}` }),
    ];
    if (violation.inferred) parts.push(Cascade.word("inferred"));
    return el("p", { class: "cr-row" }, parts);
  }

  function evidence(violation, view, wasOpen) {
    const json = () => JSON.stringify(violation.witness, null, 1);
    const details = el("details", {}, el("summary", { text: `Evidence as JSON (${Cascade.plural(violation.witness.length, "row")})` }));
    // Made when it is opened: it is long.
    const fill = () => details.open && details.children.length === 1 && details.append(el("pre", { class: "cr-pre", text: json(), attrs: { tabindex: 0 } }));
    details.addEventListener("toggle", fill);
    details.open = wasOpen;
    fill();
    return [
      el("div", { class: "cr-row" }, ui.copy("Copy as text", () => asText(violation, view)), ui.copy("Copy evidence as JSON", json)),
      details,
    ];
  }

  function listed(view, current) {
    const { violations, verdict } = view.story;
    const by_code = new Map();
    for (const one of violations) {
      if (!by_code.has(one.code)) by_code.set(one.code, []);
      by_code.get(one.code).push(one);
    }
    const total = new Map(verdict.checks.map((check) => [check.code, check.num_violations]));
    return [...by_code].map(([code, items]) => {
      const all = Math.max(total.get(code) || 0, items.length);
      const shown = items.slice(0, MOST_LISTED);
      const details = el("details", {}, el("summary", { text: `${code} ${items[0].name}: ${format.count(all)}${shown.length < all ? `, showing ${format.count(shown.length)}` : ""}` }));
      const fill = () => {
        if (!details.open || details.children.length > 1) return;
        details.append(ui.scroll(`${code} ${items[0].name}`, el("ol", { class: "cr-steps" }, shown.map((one) => el("li", {}, el("button", {
          attrs: { type: "button", "data-violation": one.id, "data-key": one.id, "aria-current": current && one.id === current.id ? "step" : null },
          on: { click: () => Cascade.seek.select(view, `violation:${one.id}`, { show: true }) },
        }, ui.icon(ui.severity(one.severity).shape, ui.severity(one.severity).tone), el("span", { text: ui.capital(one.sentence) }), el("span", { class: "cr-dim", text: format.time(one.at_ns, view) })))))));
      };
      details.addEventListener("toggle", fill);
      details.dataset.code = code;
      return details;
    });
  }

  function violation(element, { view }) {
    const { root, head, heading, body } = ui.panel("Violation", "violation");
    const { keep, destroy } = ui.cleanup(root);
    const where = el("span", { class: "cr-dim" });
    const before = ui.button("Previous", () => move(view, -1), { title: "previous violation" });
    const after = ui.button("Next", () => move(view, 1), { title: "next violation" });
    head.append(where, el("span", { class: "cr-push cr-row" }, before, after));
    const one = el("div");
    const list = el("div");
    body.append(one, list);
    let logical = false;
    let cut = null;
    const toggle = ui.button("Logical order", () => { logical = !logical; toggle.setAttribute("aria-pressed", String(logical)); picture(); }, { title: Cascade.words["logical order"], pressed: false });

    function draw() {
      const { story } = view;
      root.hidden = !story || !story.violations.length;
      if (root.hidden) return;
      const current = selected(view);
      const at = story.violations.indexOf(current);
      replace(heading, Cascade.word("violation", current ? "Violation" : "Violations"));
      const total = Math.max(story.violations.length, story.verdict.num_violations + (story.verdict.num_inferred || 0));
      const listed_part = total > story.violations.length ? `, the first ${format.count(story.violations.length)} are here` : "";
      where.textContent = `${current ? `${format.count(at + 1)} of ` : ""}${format.count(total)}${listed_part}`;
      before.disabled = at <= 0;
      after.disabled = at >= story.violations.length - 1;
      const open = one.querySelector("details");
      if (current) {
        cut = el("div");
        replace(one, el("p", { class: "cr-claim", text: ui.capital(current.sentence) }), el("div", { class: "cr-proof" },
          el("div", {}, facts(current, view), steps(current, view), evidence(current, view, Boolean(open && open.open))),
          el("div", {}, el("div", { class: "cr-row" }, el("h3", { text: "Who did what" }), toggle), cut)));
        picture();
      } else {
        cut = null;
        replace(one, el("p", { class: "cr-dim", text: "Choose one to see what led to it." }));
      }
      const opened = new Set([...list.querySelectorAll("details[open]")].map((d) => d.dataset.code));
      const groups = story.violations.length > 1 ? listed(view, current) : [];
      replace(list, groups.length ? el("h3", { text: "All violations, by rule" }) : null, groups);
      for (const group of groups) group.open = opened.has(group.dataset.code);
    }

    function picture() {
      const current = selected(view);
      if (cut && current) Cascade.cut.draw(cut, { view, violation: current, logical, current: view.step, onStep: (i) => goTo(view, i) });
    }

    function step() {
      for (const button of one.querySelectorAll(".cr-steps button")) {
        if (Number(button.dataset.step) === view.step) button.setAttribute("aria-current", "step");
        else button.removeAttribute("aria-current");
      }
      picture();
    }

    const resized = new ResizeObserver(() => picture());
    let drawn = 0;
    const later = () => { drawn = drawn || requestAnimationFrame(() => { drawn = 0; picture(); }); };
    keep(() => { resized.disconnect(); cancelAnimationFrame(drawn); });
    for (const name of ["story", "select", "clock"]) keep(view.on(name, () => ui.redraw(root, draw)));
    keep(view.on("step", step));
    keep(view.on("window", later));
    element.append(root);
    draw();
    resized.observe(body);
    return { destroy };
  }

  violation.asText = asText;
  return violation;
})();
