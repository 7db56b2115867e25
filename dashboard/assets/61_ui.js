/* Cascade.ui: what several panels share: icons, severities, regimes, tables, small buttons. */
"use strict";

Cascade.panels = {};

Cascade.ui = (() => {
  const { el, svg } = Cascade;

  // Each shape is told by its outline alone, without its colour. In a 16 x 16 box.
  const SHAPES = {
    check: { outline: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z", mark: "M4.6 8.2l2.3 2.3 4.5-4.8" },
    cross: { outline: "M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z", mark: "M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" },
    warn: { outline: "M8 1.5L15.3 14.5H.7z", mark: "M8 6v4.2M8 12v.9" },
    question: { outline: "M8 .6L15.4 8 8 15.4.6 8z", mark: "M6.1 6.6a1.9 1.9 0 1 1 2.7 1.7c-.6.3-.8.6-.8 1.2M8 11.2v.8" },
    note: { outline: "M2 2h12v12H2z", mark: "M8 7v4.4M8 4.4v.9" },
    ring: { outline: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", mark: "M8 4.4V8l2.6 1.6" },
    none: { outline: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", mark: "M5 8h6" },
    todo: { outline: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z" },
    play: { solid: "M4 2.5v11l9-5.5z" },
    pause: { solid: "M4 2.5h3v11H4zM9 2.5h3v11H9z" },
    prev: { solid: "M3 2.5h2v11H3zM13 2.5v11L6 8z" },
    next: { solid: "M11 2.5h2v11h-2zM3 2.5v11L10 8z" },
  };
  const SEVERITIES = {
    error: { shape: "cross", tone: "bad", word: "error" },
    warning: { shape: "warn", tone: "warn", word: "warning" },
    info: { shape: "note", tone: "dim", word: "note" },
  };
  const VERDICTS = {
    ok: { shape: "check", tone: "ok", word: "ok" },
    violated: { shape: "cross", tone: "bad", word: "violated" },
    unknown: { shape: "question", tone: "unknown", word: "unknown" },
    not_checked: { shape: "none", tone: "dim", word: "not checked" },
    pending: { shape: "ring", tone: "dim", word: "not judged yet" },
    judging: { shape: "ring", tone: "dim", word: "judging" },
    none: { shape: "none", tone: "dim", word: "not judged" },
  };
  const CLASS_OF = { STRONG: "strong", CAUSAL: "causal", EVENTUAL: "eventual" };

  /** A small picture; it says nothing to a screen reader, so a word stands beside it. */
  function icon(shape, tone) {
    const { outline, mark, solid } = SHAPES[shape] || SHAPES.none;
    const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" };
    return svg(
      "svg",
      { class: `cr-icon${tone ? ` cr-tone-${tone}` : ""}`, attrs: { viewBox: "0 0 16 16", "aria-hidden": "true", "data-shape": shape } },
      solid ? svg("path", { attrs: { d: solid, fill: "currentColor" } }) : null,
      outline ? svg("path", { attrs: { d: outline, ...line } }) : null,
      mark ? svg("path", { attrs: { d: mark, ...line } }) : null,
    );
  }

  const severity = (name) => SEVERITIES[name] || SEVERITIES.info;
  const verdict = (name) => VERDICTS[name] || VERDICTS.unknown;

  /** Shape, colour and word of a severity or of a verdict. */
  function sign(of) {
    return el("span", { class: `cr-tone-${of.tone}` }, icon(of.shape), " ", el("span", { text: of.word }));
  }

  /** Colour, letter and word of a regime (a name). */
  function regime(name) {
    const known = Object.hasOwn(CLASS_OF, name);
    return el("span", { class: "cr-regime" },
      known ? el("span", { class: `cr-swatch cr-bg-${CLASS_OF[name]}`, attrs: { "aria-hidden": "true" } }) : null,
      el("span", { text: known ? name : "no row" }));
  }

  function button(label, action, { title, shape, pressed, primary } = {}) {
    return el("button", {
      class: `cr-btn${shape ? " cr-btn-icon" : ""}${primary ? " cr-primary" : ""}`,
      attrs: { type: "button", title: title || null, "aria-label": shape ? label : null, "aria-pressed": pressed === undefined ? null : pressed },
      on: { click: action },
    }, shape ? icon(shape) : label);
  }

  /** A button that puts text on the clipboard and says so. */
  function copy(label, textOf) {
    const done = (words) => {
      node.textContent = words;
      setTimeout(() => { node.textContent = label; }, 1500);
    };
    const node = button(label, async () => {
      try {
        await navigator.clipboard.writeText(textOf());
        done("Copied");
      } catch {
        done("The browser refused to copy");
      }
    });
    node.setAttribute("aria-live", "polite");
    return node;
  }

  /** Offers text as a file to keep. */
  function download(name, text, type) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = el("a", { attrs: { href: url, download: name } });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 0);
  }

  /** Link to the statement behind a figure; nothing where there is no statement or no server. */
  function sqlLink(story, name, offline, what) {
    const statement = story && story.sql ? story.sql[name] : null;
    if (offline || !statement) return null;
    return el("a", {
      class: "cr-link cr-sql",
      text: "SQL",
      attrs: {
        href: `/dash/run/${encodeURIComponent(story.run.run_id)}/sql?q=${encodeURIComponent(statement)}`,
        title: statement,
        "aria-label": `show SQL of ${what || name}`,
      },
    });
  }

  /**
   * table([{label, num, word}], rows, {caption, empty}): rows are lists of strings, numbers or
   * elements; the first of a row is its header.
   */
  function table(columns, rows, { caption, empty } = {}) {
    const head = el("tr", {}, columns.map((c) => el("th", { class: c.num ? "cr-num" : "", attrs: { scope: "col" } }, c.word ? Cascade.word(c.word, c.label) : c.label)));
    const lines = rows.map((row) => el("tr", {}, row.map((value, i) => el(i ? "td" : "th", {
      class: [columns[i].num ? "cr-num" : "", columns[i].wrap ? "cr-wrap" : ""].join(" ").trim(),
      attrs: i ? {} : { scope: "row" },
    }, value === null || value === undefined ? "" : value))));
    if (!rows.length && empty) lines.push(el("tr", {}, el("td", { class: "cr-dim", text: empty, attrs: { colspan: columns.length } })));
    return el("table", { class: "cr-table" }, caption ? el("caption", { text: caption }) : null, el("thead", {}, head), el("tbody", {}, lines));
  }

  /** A scrolling box that the keyboard reaches. */
  function scroll(label, ...children) {
    return el("div", { class: "cr-scroll", attrs: { tabindex: 0, role: "region", "aria-label": label } }, children);
  }

  /** A panel with a heading: {root, head, body}. */
  function panel(title, name) {
    const heading = el("h2", { attrs: { id: `cascade-h-${name}` } }, title);
    const head = el("div", { class: "cr-head" }, heading);
    const body = el("div", { class: "cr-body" });
    const root = el("section", { class: "cr-panel", attrs: { "aria-labelledby": `cascade-h-${name}` } }, head, body);
    return { root, head, heading, body };
  }

  /** Collects what must be taken off again: keep(off) and destroy(). */
  function cleanup(root) {
    const offs = [];
    return {
      keep: (off) => offs.push(off),
      destroy: () => {
        for (const off of offs.splice(0)) off();
        if (root) root.remove();
      },
    };
  }

  /** Draws again and puts focus (by data-key) and scroll places (by aria-label) back where they were. */
  function redraw(root, draw) {
    const key = root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const places = [...root.querySelectorAll(".cr-scroll")].map((box) => [box.getAttribute("aria-label"), box.scrollTop, box.scrollLeft]);
    draw();
    for (const box of root.querySelectorAll(".cr-scroll")) {
      const place = places.find(([label]) => label === box.getAttribute("aria-label"));
      if (place) [box.scrollTop, box.scrollLeft] = place.slice(1);
    }
    if (key === undefined) return;
    const again = [...root.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key);
    if (again) again.focus({ preventScroll: true });
  }

  /** A sentence with a capital first. */
  function capital(text) {
    return text ? text.charAt(0).toUpperCase() + text.slice(1) : "";
  }

  /** "rank 2" or "rank 2.1": an actor in words. */
  function actor(rank, incarnation) {
    return incarnation ? `rank ${rank}.${incarnation}` : `rank ${rank}`;
  }

  /** Who somebody is, in words (dashboard/story/actor_names.py): host agents are numbered among the ranks. */
  function who(story, rank, incarnation = 0) {
    const agents = story.actors.filter((one) => one.kind === "agent");
    const found = agents.find((one) => one.rank === rank && one.incarnation === incarnation) || agents.find((one) => one.rank === rank);
    if (!found) return actor(rank, incarnation);
    if (new Set(agents.map((one) => one.rank)).size === 1) return "the host agent";
    const areApart = new Set(agents.map((one) => one.host)).size === agents.length;
    return found.host && areApart ? `the agent of ${found.host}` : actor(rank, incarnation).replace("rank", "agent");
  }

  /** "4 ranks and 1 agent", of those who should be there "3 of 4 ranks and 1 agent". */
  function party(story) {
    const agents = new Set(story.actors.filter((one) => one.kind === "agent").map((one) => one.rank));
    const missing = story.missing.filter((rank) => !agents.has(rank) && !story.ranks.includes(rank));
    const of = missing.length ? `${Cascade.format.count(story.ranks.length)} of ` : "";
    const ranks = `${of}${Cascade.plural(story.ranks.length + missing.length, "rank")}`;
    return agents.size ? `${ranks} and ${Cascade.plural(agents.size, "agent")}` : ranks;
  }

  const { progress } = Cascade.unfinished;

  return {
    icon, severity, verdict, sign, regime, button, copy, download, sqlLink, table, scroll, panel, cleanup, redraw, capital, actor, who, party, progress, CLASS_OF,
  };
})();
