/* Mounts the run view in its own document (dashboard/shell/run_document.py), at once; in a document of Dash
 * where a page has a place for it, and unmounts it when that goes. */
"use strict";

(() => {
  const theme = window.CascadeTheme; // 90_theme.js, loaded in the head
  let place = null;
  let mounted = null;

  function unmount() {
    if (mounted) mounted.destroy();
    mounted = null;
    place = null;
    theme.onchange = null;
  }

  function mount(element) {
    const run = element.dataset.run;
    place = element;
    element.replaceChildren();
    try {
      const source = new Cascade.ServerSource("", run);
      const view = new Cascade.View({ theme: theme.view() });
      view.on("theme", (chosen) => theme.choose(chosen === "auto" ? "system" : chosen));
      theme.onchange = () => view.set({ theme: theme.view() });
      Cascade.headBadge(view); // before anything is told
      mounted = Cascade.mount(element, { source, view });
    } catch (error) {
      const said = document.createElement("p");
      said.className = "cs-notice cs-bad";
      said.setAttribute("role", "alert");
      said.textContent = `The run view cannot be drawn here: ${error.message}. Reload the page; cascade analyze says the same in words.`;
      element.replaceChildren(said);
      console.error(error);
    }
  }

  function look() {
    const element = document.getElementById("cascade-run");
    if (element === place) return;
    unmount();
    if (element) mount(element);
  }

  // In its own document nothing comes and goes.
  if (document.getElementById("react-entry-point")) {
    new MutationObserver(look).observe(document.documentElement, { childList: true, subtree: true });
  }
  look();
})();
