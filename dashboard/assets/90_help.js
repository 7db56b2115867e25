/* The help button: the run view's own key list where there is one, else a few words. */
"use strict";

(() => {
  const WORDS = [
    ["Regime", "which consistency was promised: STRONG, CAUSAL or EVENTUAL"],
    ["Walk", "a move from one regime to another, with a new epoch"],
    ["Debt", "what was relaxed and has to be settled before the climb back"],
    ["Waited", "a rank's own time in collectives, until the last one came"],
    ["Caused", "waits of others that go back to this rank alone"],
    ["Blamed", "its share of all waits; ranks that came last together share one"],
    ["Verdict", "what the referee says of the promises: ok, violated, or unknown"],
  ];
  const KEYS = [
    ["?", "this help"],
    ["Ctrl+Enter", "run the statement in the SQL box"],
    ["Esc", "close"],
  ];

  function list(pairs, tag) {
    const made = document.createElement("dl");
    for (const [word, says] of pairs) {
      const term = document.createElement("dt");
      const inner = document.createElement(tag);
      inner.textContent = word;
      term.append(inner);
      const told = document.createElement("dd");
      told.textContent = says;
      made.append(term, told);
    }
    return made;
  }

  function heading(text) {
    const made = document.createElement("h2");
    made.textContent = text;
    return made;
  }

  function open() {
    if (document.getElementById("cascade-run")) {
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
      return;
    }
    let dialog = document.getElementById("cs-help-dialog");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.id = "cs-help-dialog";
      dialog.className = "cs-help";
      dialog.setAttribute("aria-label", "Help");
      const close = document.createElement("button");
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      dialog.append(heading("Keys"), list(KEYS, "kbd"), heading("Words"), list(WORDS, "b"), close);
      document.body.append(dialog);
    }
    if (!dialog.open) dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("#cs-help")) open();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || document.getElementById("cascade-run")) return;
    if (event.target instanceof Element && event.target.closest("input, textarea, select")) return;
    open();
  });
})();
