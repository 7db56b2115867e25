/* Cascade.keys(view, {timeline}): the keys of the page, as in Perfetto where it has them.
 * Keys of one letter can be turned off in the key list, for those whose software types for them. */
"use strict";

Cascade.keys = (() => {
  const SECOND = 1e9;
  const TYPING = "input, textarea, select, [contenteditable=''], [contenteditable=true]";
  const ARROWS_TAKEN = "[role=tab], [role=listbox], [role=option], [role=menu], [role=slider], [role=grid], [role=radio]";
  const PRESSABLE = "button, a[href], summary, [role=button], [role=tab]";
  const SETTING = "cascade-single-keys";
  const TWICE_MS = 700;

  function setting() {
    try {
      return localStorage.getItem(SETTING) !== "off";
    } catch {
      return true; // a report opened from disk may have no storage
    }
  }

  function remember(on) {
    try {
      localStorage.setItem(SETTING, on ? "on" : "off");
    } catch {
      // nothing to keep it in: it holds until the page is closed
    }
  }

  const single = { on: setting() };

  function toggle(view) {
    if (view.playing) view.set({ playing: false });
    else {
      if (view.t >= view.t1 - 1e6) view.seek(view.area ? view.area.a : 0);
      view.set({ playing: true, follow: false });
    }
  }

  /** L plays, again twice as fast; J the same backwards. */
  function play(view, direction) {
    const going = view.playing && Math.sign(view.speed) === direction;
    const speed = going ? Math.min(1000, Math.abs(view.speed) * 2) : 1;
    view.set({ speed: direction * speed, playing: true, follow: false });
  }

  /** The stretch to look at: the selected stretch, else what is selected. */
  function stretch(view) {
    if (view.area) return view.area;
    const found = Cascade.seek.find(view.story, view.sel);
    return found && found.kind !== "wait" ? found : null;
  }

  function focus(view, memory) {
    const now = performance.now();
    const chosen = stretch(view);
    if (!chosen || now - memory.at < TWICE_MS) view.whole();
    else view.show(chosen.a, chosen.b);
    memory.at = now;
  }

  function clear(view) {
    if (view.area) view.set({ area: null });
    else if (view.sel) view.set({ sel: null, step: 0 });
    else if (view.filter) view.set({ filter: null });
    else view.set({ flags: [] });
  }

  function flag(view) {
    const t = Math.round(view.t);
    const near = view.flags.find((at) => Math.abs(at - t) <= view.span / 400);
    view.set({ flags: near === undefined ? [...view.flags, t].sort((x, y) => x - y) : view.flags.filter((at) => at !== near) });
  }

  function end(view) {
    const state = view.pulse ? view.pulse.state : view.story && view.story.run.state;
    if (state === "live" || state === "waiting") view.followLive();
    else view.seek(view.t1);
  }

  /** key -> [what it does in words, action(context)]; letters are lower case. */
  const KEYS = {
    w: ["Zoom in", ({ view }) => view.zoom(0.75)],
    s: ["Zoom out", ({ view }) => view.zoom(1 / 0.75)],
    a: ["Earlier", ({ view }) => view.pan(-0.15)],
    d: ["Later", ({ view }) => view.pan(0.15)],
    ArrowLeft: ["Previous transition", ({ view }) => { view.set({ playing: false }); Cascade.seek.transition(view, -1); }],
    ArrowRight: ["Next transition", ({ view }) => { view.set({ playing: false }); Cascade.seek.transition(view, 1); }],
    "Shift+ArrowLeft": ["One second back", ({ view }) => view.seek(view.t - SECOND)],
    "Shift+ArrowRight": ["One second on", ({ view }) => view.seek(view.t + SECOND)],
    " ": ["Play or pause", ({ view }) => toggle(view)],
    j: ["Play backwards; again: faster", ({ view }) => play(view, -1)],
    k: ["Pause", ({ view }) => view.set({ playing: false })],
    l: ["Play; again: faster", ({ view }) => play(view, 1)],
    Home: ["Start of the run", ({ view }) => view.seek(0)],
    End: ["End of the run; live: follow", ({ view }) => end(view)],
    f: ["Show the selection; twice: the whole run", ({ view, memory }) => focus(view, memory)],
    ".": ["Next incident on the list", ({ view }) => Cascade.panels.incidents.next(view)],
    ",": ["Previous incident on the list", ({ view }) => Cascade.panels.incidents.prev(view)],
    "]": ["Next step of the violation", ({ view }) => Cascade.seek.step(view, 1)],
    "[": ["Previous step of the violation", ({ view }) => Cascade.seek.step(view, -1)],
    m: ["Mark this moment, or take its mark off", ({ view }) => flag(view)],
    r: ["Select the stretch of the selection", ({ view }) => {
      const chosen = stretch(view);
      if (chosen) view.set({ area: { a: Math.max(0, chosen.a), b: chosen.b } });
    }],
    "/": ["Search: rank, rule code, fault", ({ timeline }) => timeline && timeline.toolbar.search.open()],
    Escape: ["Clear: stretch, then selection, then filter, then marks", ({ view }) => clear(view)],
    t: ["Light or dark", ({ view }) => view.set({ theme: Cascade.shownTheme() === "dark" ? "light" : "dark" })],
    "?": ["This list", ({ timeline }) => timeline && Cascade.keyList(timeline)],
  };

  function nameOf(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    return event.shiftKey && key.startsWith("Arrow") ? `Shift+${key}` : key;
  }

  /** What a key press means here: an action or null. */
  function meaning(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return null;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest(TYPING) || document.querySelector("dialog[open]")) return null;
    const name = nameOf(event);
    if (name.length === 1 && name !== " " && !single.on && name !== "?") return null;
    if (name === " " && target.closest(PRESSABLE)) return null;
    if (name.includes("Arrow") && target.closest(ARROWS_TAKEN)) return null;
    return Object.hasOwn(KEYS, name) ? KEYS[name] : null;
  }

  /** Listens on the whole document; gives a function that stops it. */
  function keys(view, { timeline = null } = {}) {
    const memory = { at: -Infinity };
    const listener = (event) => {
      const found = meaning(event);
      if (!found || !view.story) return;
      event.preventDefault();
      found[1]({ view, timeline, memory });
    };
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }

  return Object.assign(keys, { KEYS, single, remember });
})();

/** Opens the list of all keys. */
Cascade.keyList = (timeline) => {
  const { el } = Cascade;
  const { KEYS, single, remember } = Cascade.keys;
  const shown = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", "Shift+ArrowLeft": "Shift ←", "Shift+ArrowRight": "Shift →", Escape: "Esc" };
  const row = (key, words) => el("div", { class: "ct-key-row" },
    el("dt", {}, el("kbd", { text: shown[key] || (/^[a-z]$/.test(key) ? key.toUpperCase() : key) })), el("dd", { text: words }));
  const mouse = [
    ["Drag", "Select a stretch"], ["Shift drag", "Move the window"], ["Ctrl wheel", "Zoom about the mouse"],
    ["Wheel", "Scroll the lanes"], ["Click", "Cursor, and select what is there"],
  ];
  const box = el("input", { attrs: { type: "checkbox" }, on: { change: () => { single.on = box.checked; remember(box.checked); } } });
  box.checked = single.on;
  const dialog = el("dialog", { class: "ct-keys", attrs: { "aria-label": "Keys" }, on: { close: () => dialog.remove() } },
    el("div", { class: "ct-keys-head" }, el("h2", { text: "Keys" }),
      el("button", { class: "ct-button", text: "Close", attrs: { type: "button" }, on: { click: () => dialog.close() } })),
    el("dl", { class: "ct-key-list" }, Object.entries(KEYS).map(([key, [words]]) => row(key, words)), mouse.map(([key, words]) => row(key, words))),
    el("label", { class: "ct-check" }, box, el("span", { text: "Keys of one letter are on" })));
  timeline.root.append(dialog);
  dialog.showModal();
};
