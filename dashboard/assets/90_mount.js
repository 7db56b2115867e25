/* Mounts the run view in its document (dashboard/shell/run_document.py). */
"use strict";

(() => {
  const theme = window.CascadeTheme; // 90_theme.js, loaded in the head
  const element = document.getElementById("cascade-run");

  element.replaceChildren();
  try {
    const source = new Cascade.ServerSource("", element.dataset.run);
    const view = new Cascade.View({ theme: theme.view() });
    view.on("theme", (chosen) => theme.choose(chosen === "auto" ? "system" : chosen));
    theme.onchange = () => view.set({ theme: theme.view() });
    Cascade.mount(element, { source, view });
  } catch (error) {
    const said = document.createElement("p");
    said.className = "cs-notice cs-bad";
    said.setAttribute("role", "alert");
    said.textContent = `The run view cannot be drawn here: ${error.message}. Reload the page; cascade analyze says the same in words.`;
    element.replaceChildren(said);
    console.error(error);
  }
})();
