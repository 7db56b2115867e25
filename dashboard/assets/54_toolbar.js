/* The line above the timeline: legend (which filters), sorting, lanes, and where to look. */
"use strict";

Cascade.Toolbar = class Toolbar {
  constructor(timeline) {
    const { el } = Cascade;
    const { view } = timeline;
    this.timeline = timeline;
    const button = (text, title, action, attrs = {}) => el("button", {
      class: "ct-button", text, attrs: { type: "button", title, ...attrs }, on: { click: action },
    });
    this.legend = [...Cascade.REGIMES, "no row"].map((name) => this.legendButton(name));
    this.sort = el("select", {
      class: "ct-select", attrs: { "aria-label": "Sort ranks by" }, on: { change: () => view.set({ sort: this.sort.value }) },
    }, [["id", "sort: rank"], ["blamed", "sort: blamed"], ["waited", "sort: waited"], ["violations", "sort: violations"]]
      .map(([value, text]) => el("option", { text, attrs: { value } })));
    this.rowsBy = el("select", {
      class: "ct-select", attrs: { "aria-label": "A row for each", hidden: true }, on: { change: () => view.set({ rowsBy: this.rowsBy.value }) },
    }, [["auto", "rows: fit"], ["rank", "rows: ranks"], ["host", "rows: hosts"]]
      .map(([value, text]) => el("option", { text, attrs: { value } })));
    this.group = el("select", {
      class: "ct-select", attrs: { "aria-label": "Group", hidden: true }, on: { change: () => view.set({ group: this.group.value }) },
    });
    this.lanesList = el("div", { class: "ct-menu-list", attrs: { role: "group", "aria-label": "Lanes" } });
    this.menu = el("details", { class: "ct-menu" }, el("summary", { class: "ct-button", text: "Lanes" }), this.lanesList);
    this.onOutside = (event) => {
      if (this.menu.open && !this.menu.contains(event.target)) this.menu.open = false;
    };
    document.addEventListener("pointerdown", this.onOutside);
    timeline.offs.push(() => document.removeEventListener("pointerdown", this.onOutside));
    this.menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.menu.open) return;
      event.stopPropagation();
      this.menu.open = false;
      this.menu.querySelector("summary").focus();
    });
    this.zoomArea = button("Selection", "Zoom to selection: show the selected stretch (F)", () => view.area && view.show(view.area.a, view.area.b, 0), { "aria-label": "Zoom to selection" });
    this.follow = button("Live", "Follow live: keep the newest row in sight (End)", () => view.followLive(), { "aria-pressed": "false", "aria-label": "Follow live" });
    this.table = button("Table", "View as table: the same for reading aloud or copying", () => this.openTable(), { "aria-label": "View as table" });
    this.search = new Cascade.Search(timeline);
    this.root = el("div", { class: "ct-toolbar", attrs: { role: "toolbar", "aria-label": "Timeline" } },
      el("div", { class: "ct-legend", attrs: { role: "group", "aria-label": "Show only" } }, this.legend),
      el("span", { class: "ct-space" }), this.search.root, this.group, this.rowsBy, this.sort, this.menu,
      el("div", { class: "ct-buttons" }, this.zoomArea, button("Whole run", "Show all of it (F twice)", () => view.whole()), this.follow,
        this.table, button("Keys", "All keys (?)", () => Cascade.keyList(timeline), { class: "ct-button ct-keys-button" })));
    for (const name of ["filter", "area", "mode", "sort", "group", "lanes", "pulse"]) timeline.offs.push(view.on(name, () => this.refresh()));
  }

  legendButton(name) {
    const { el } = Cascade;
    const { view } = this.timeline;
    const letter = name === "no row" ? "" : name[0];
    const kind = name === "no row" ? "none" : name.toLowerCase();
    return el("button", {
      class: "ct-legend-item", attrs: { type: "button", "aria-pressed": "false", title: `Show only ${name}`, "data-name": name },
      on: { click: () => view.set({ filter: view.filter === name ? null : name }) },
    }, el("span", { class: `ct-swatch ct-swatch-${kind}`, text: letter, attrs: { "aria-hidden": "true" } }), el("span", { text: name }));
  }

  openTable() {
    const { view, source } = this.timeline;
    if (Cascade.tables && Cascade.tables.timeline) Cascade.tables.timeline(view, source);
  }

  /** Puts every control as the view says; does nothing where it already is. */
  refresh() {
    const { timeline } = this;
    const { view } = timeline;
    for (const item of this.legend) {
      const lit = view.filter === item.dataset.name;
      item.setAttribute("aria-pressed", String(lit));
      item.classList.toggle("ct-dimmed", Boolean(view.filter) && !lit);
    }
    this.sort.value = view.sort;
    this.rowsBy.value = view.rowsBy;
    this.rowsBy.hidden = !(view.story && Cascade.rows.foldable(timeline.lookup));
    this.zoomArea.disabled = !view.area;
    const state = (view.pulse && view.pulse.state) || (view.story && view.story.run.state);
    this.follow.hidden = timeline.offline || !["live", "waiting"].includes(state);
    this.follow.setAttribute("aria-pressed", String(view.follow));
    this.table.hidden = !(Cascade.tables && Cascade.tables.timeline);
    this.refreshGroups();
    this.refreshLanes();
  }

  refreshGroups() {
    const { view } = this.timeline;
    const groups = view.story ? view.story.groups : [];
    this.group.hidden = groups.length < 2;
    const key = groups.join("\n");
    if (key !== this.groupsKey) {
      this.groupsKey = key;
      Cascade.replace(this.group, groups.map((name) => Cascade.el("option", { text: `group ${name}`, attrs: { value: name } })));
    }
    this.group.value = view.group;
  }

  refreshLanes() {
    const { el, replace } = Cascade;
    const { view, lanes } = this.timeline;
    if (!lanes) return;
    const key = JSON.stringify(view.lanes);
    if (key === this.lanesKey) return;
    this.lanesKey = key;
    const { hidden = [], folded = [] } = view.lanes || {};
    const box = (checked, label, action) => {
      const input = el("input", { attrs: { type: "checkbox" }, on: { change: action } });
      input.checked = checked;
      return el("label", { class: "ct-check" }, input, el("span", { text: label }));
    };
    const focused = [...this.lanesList.querySelectorAll("input")].indexOf(document.activeElement);
    replace(this.lanesList, lanes.map((lane) => el("div", { class: "ct-menu-row" },
      box(!hidden.includes(lane.name), lane.title, () => Cascade.toggleLane(view, lane.name)),
      lane.foldable ? box(folded.includes(lane.name), "folded", () => Cascade.foldLane(view, lane.name)) : null,
      lane.tip && Cascade.word ? Cascade.word(lane.tip, "what is it?") : null)));
    if (focused >= 0) this.lanesList.querySelectorAll("input")[focused].focus();
  }
};
