/* The theme: what was chosen (system, light, dark), kept; what it is now, as data-theme on :root.
   Loaded in the head, before anything is painted. Whoever sets data-theme elsewhere is followed. */
"use strict";

(() => {
  const KEY = "cascade-theme";
  const CHOICES = ["system", "light", "dark"];
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    const asked = new URLSearchParams(window.location.search).get("theme");
    if (CHOICES.includes(asked)) return asked;
    try {
      const kept = window.localStorage.getItem(KEY);
      return CHOICES.includes(kept) ? kept : "system";
    } catch {
      return "system";
    }
  }

  let choice = chosen();

  function shown() {
    if (choice !== "system") return choice;
    return system.matches ? "dark" : "light";
  }

  function apply() {
    const theme = shown();
    if (root.dataset.theme !== theme) root.dataset.theme = theme;
    root.dataset.agThemeMode = theme;
    label();
  }

  function label() {
    const button = document.getElementById("cs-theme");
    if (!button) return;
    const text = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[choice];
    if (button.textContent !== text) button.textContent = text;
  }

  function choose(next) {
    choice = next;
    try {
      window.localStorage.setItem(KEY, next);
    } catch {
      /* it holds for this page */
    }
    apply();
    if (shared.onchange) shared.onchange();
  }

  const shared = {
    /** What the run view calls the choice. */
    view: () => (choice === "system" ? "auto" : choice),
    choose: (next) => next !== choice && choose(next),
    onchange: null,
  };
  window.CascadeTheme = shared;

  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("#cs-theme");
    if (button) choose(CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length]);
  });

  new MutationObserver(() => {
    const theme = root.dataset.theme;
    if (!theme) {
      shared.choose("system");
      apply();
      return;
    }
    root.dataset.agThemeMode = theme;
    if (theme !== shown()) shared.choose(theme);
    if (window.dash_clientside && window.dash_clientside.set_props && document.getElementById("page")) {
      window.dash_clientside.set_props("theme", { data: theme });
    }
  }).observe(root, { attributes: true, attributeFilter: ["data-theme"] });

  new MutationObserver(label).observe(root, { childList: true, subtree: true });
  apply();
})();
