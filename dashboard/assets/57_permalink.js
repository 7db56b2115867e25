/* Cascade.permalink(view, {offline}): the address bar says where the page looks, and is read at mount.
 * On a server the parameters are the query, in a report file they follow the #. */
"use strict";

Cascade.permalink = (() => {
  const EVERY_MS = 250;
  const OURS = ["t", "a", "b", "follow", "sel", "step", "area", "flags", "lanes", "sort", "rows", "filter", "group", "clock", "theme"];
  const CHOICES = {
    clock: ["start", "utc", "local"], theme: ["light", "dark"],
    rows: ["rank", "host"], sort: ["id", "blamed", "waited", "violations"], filter: ["STRONG", "CAUSAL", "EVENTUAL", "no row"],
  };

  const AS_BEFORE = { caused: "blamed" }; // what an older link calls it

  /** The view as parameters; what is as usual is left out. */
  function encode(view) {
    const said = new URLSearchParams();
    if (view.follow) said.set("follow", "1");
    else if (view.story) for (const name of ["t", "a", "b"]) said.set(name, String(Math.round(view[name])));
    if (view.sel) said.set("sel", view.sel);
    if (view.step) said.set("step", String(view.step));
    if (view.area) said.set("area", `${Math.round(view.area.a)}-${Math.round(view.area.b)}`);
    if (view.flags.length) said.set("flags", view.flags.join(","));
    if (view.lanes) {
      said.set("lanes", [...view.lanes.hidden.map((name) => `-${name}`), ...view.lanes.folded.map((name) => `~${name}`)].join(","));
    }
    if (view.sort !== "id") said.set("sort", view.sort);
    if (view.rowsBy !== "auto") said.set("rows", view.rowsBy);
    if (view.filter) said.set("filter", view.filter);
    if (view.group !== "world") said.set("group", view.group);
    if (view.clockMode !== "start") said.set("clock", view.clockMode);
    if (view.theme !== "auto") said.set("theme", view.theme);
    return said;
  }

  /** Parameters as a patch of the view; what cannot be understood is left out. */
  function decode(parameters) {
    const patch = {};
    const number = (text) => (text !== null && /^-?\d{1,18}(\.\d+)?$/.test(text) ? Number(text) : null);
    for (const name of ["t", "a", "b", "step"]) {
      const value = number(parameters.get(name));
      if (value !== null) patch[name] = value;
    }
    if (!(patch.a < patch.b)) {
      delete patch.a;
      delete patch.b;
    }
    if (parameters.get("follow") === "1") patch.follow = true;
    const sel = parameters.get("sel");
    if (sel && /^(violation|wait|walk|rank|incident):./.test(sel)) patch.sel = sel;
    const area = /^(\d{1,18})-(\d{1,18})$/.exec(parameters.get("area") || "");
    if (area && Number(area[1]) <= Number(area[2])) patch.area = { a: Number(area[1]), b: Number(area[2]) };
    const flags = (parameters.get("flags") || "").split(",").map(number).filter((value) => value !== null);
    if (flags.length) patch.flags = flags.slice(0, 100);
    const lanes = (parameters.get("lanes") || "").split(",").filter((name) => /^[-~][a-z]+$/.test(name));
    const named = (sign) => lanes.filter((name) => name[0] === sign).map((name) => name.slice(1));
    if (lanes.length) patch.lanes = { hidden: named("-"), folded: named("~") };
    for (const [name, choices] of Object.entries(CHOICES)) {
      const value = AS_BEFORE[parameters.get(name)] || parameters.get(name);
      if (choices.includes(value)) patch[{ clock: "clockMode", rows: "rowsBy" }[name] || name] = value;
    }
    if (parameters.get("group")) patch.group = parameters.get("group");
    return patch;
  }

  /** What has to wait for the story: window, cursor, selection. */
  function place(patch, view) {
    const { story } = view;
    if (patch.group && story.groups.includes(patch.group)) view.set({ group: patch.group });
    const later = {};
    for (const name of ["sel", "step", "area", "flags"]) if (name in patch) later[name] = patch[name];
    view.set(later);
    // Of a run that is over meanwhile: as if no place was given.
    if (patch.follow && (Cascade.unfinished.grows(view) || (!("a" in patch) && !patch.sel))) {
      Cascade.seek.open(view);
      return;
    }
    const found = Cascade.seek.find(story, patch.sel);
    if ("a" in patch) view.look(patch.a, patch.b);
    else if (found) view.show(found.a, found.b);
    else view.whole();
    const t = "t" in patch ? patch.t : found ? found.at_ns : null;
    if (t !== null) view.set({ t: Cascade.clamp(t, 0, view.t1) });
  }

  function read(offline) {
    return new URLSearchParams(offline ? location.hash.replace(/^#/, "") : location.search);
  }

  /** Parameters that are not ours stay as they are. */
  function write(view, offline) {
    if (!view.story) return;
    const parameters = read(offline);
    for (const name of OURS) parameters.delete(name);
    for (const [name, value] of encode(view)) parameters.set(name, value);
    const text = parameters.toString().replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%7E/g, "~");
    const url = offline ? `#${text}` : `${location.pathname}${text ? `?${text}` : ""}${location.hash}`;
    try {
      history.replaceState(history.state, "", url);
    } catch {
      // a browser that refuses (too often, or a file) costs the link, not the page
    }
  }

  const kept = new WeakMap();

  function permalink(view, { offline = false } = {}) {
    if (kept.has(view)) return kept.get(view);
    const patch = decode(read(offline));
    const now = {};
    for (const name of ["lanes", "sort", "rowsBy", "filter", "clockMode", "theme"]) if (name in patch) now[name] = patch[name];
    view.set(now);
    if (["t", "a", "sel", "follow"].some((name) => name in patch)) view.given = () => place(patch, view);
    // Not at once: the browser takes its time over it, and a wheel that turns waits for a picture.
    let timer = 0;
    const save = () => {
      timer = timer || setTimeout(() => {
        timer = 0;
        write(view, offline);
      }, EVERY_MS);
    };
    const off = view.on("change", (names) => {
      if (names.some((name) => !["hover", "pulse", "story", "t1", "problem", "playing", "speed", "skipQuiet"].includes(name))) save();
    });
    const link = {
      destroy() {
        off();
        clearTimeout(timer);
        kept.delete(view);
      },
    };
    kept.set(view, link);
    return link;
  }

  return Object.assign(permalink, { encode, decode });
})();
