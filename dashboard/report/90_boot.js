/* Puts a report on screen: its head, the run view, and what the file holds. */
"use strict";

(() => {
  const { el } = Cascade;
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  const NAMED = { auto: "system", light: "light", dark: "dark" };

  function drawHead(source, view) {
    const { run } = source.told;
    const button = el("button", { class: "rp-theme", attrs: { type: "button" }, on: { click: () => view.set({ theme: NEXT[view.theme] }) } });
    const label = () => { button.textContent = `Theme: ${NAMED[view.theme]}`; };
    view.on("theme", label);
    label();
    document.getElementById("report-head").append(
      el("span", { class: "rp-brand", text: "CASCADE" }), el("span", { class: "rp-name", text: run.name, attrs: { title: `run ${run.run_id}` } }),
      el("span", { class: "rp-dim", text: `report · ${Cascade.plural(source.told.ranks.length, "rank")} · ${Cascade.plural(run.num_rows, "row")}` }), button);
  }

  function drawFoot(source) {
    document.getElementById("report-foot").append(
      el("h2", { text: "What this file holds" }),
      el("ul", {}, source.limits().map((text) => el("li", { text }))),
      el("p", { class: "rp-dim", text: `Run ${source.run_id}. Made by ${source.head.made_by}. Nothing is loaded from anywhere; no network is used.` }));
  }

  async function start() {
    const place = document.getElementById("cascade-run");
    Cascade.applyTheme("auto");
    try {
      const source = await Cascade.ReportSource.open();
      const view = new Cascade.View({ theme: "auto" });
      drawHead(source, view);
      Cascade.report = { source, ...Cascade.mount(place, { source, view, offline: true }) };
      drawFoot(source);
    } catch (error) {
      console.error(error);
      place.append(el("p", { class: "rp-said", text: `This report cannot be shown: ${error.message}.`, attrs: { role: "alert" } }));
    }
  }

  start();
})();
