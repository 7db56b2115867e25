/* The SQL box: keys, examples, the address, downloads. What runs, runs in the collector. */
"use strict";

(() => {
  const MOST_ROWS = 1000000;
  const LONGEST_IN_ADDRESS = 4000;
  const ENDINGS = { csv: "csv", arrow: "arrows" };

  /** Gives React's text area a text as if it had been typed. */
  function type(text) {
    const area = document.getElementById("sql-text");
    if (!area) return;
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, text);
    area.dispatchEvent(new Event("input", { bubbles: true }));
    area.focus();
  }

  function run() {
    // One frame later, so that what was typed last is in the state that the click sends.
    window.requestAnimationFrame(() => document.getElementById("sql-go")?.click());
  }

  document.addEventListener("keydown", (event) => {
    if (event.target instanceof Element && event.target.id === "sql-text") {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      }
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest(".cs-example");
    if (button && button.dataset.sql) {
      type(button.dataset.sql);
      run();
    }
  });

  /** Puts the caret where the error is. */
  function point(problem) {
    const area = document.getElementById("sql-text");
    const line = Number(problem.dataset.line);
    if (!area || !line) return;
    const lines = area.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    const at = before + Math.max(0, Number(problem.dataset.column || 1) - 1);
    area.focus();
    area.setSelectionRange(at, at);
  }

  let pointed = null;
  new MutationObserver(() => {
    const problem = document.getElementById("sql-problem");
    if (problem && problem !== pointed) point(problem);
    pointed = problem;
  }).observe(document.documentElement, { childList: true, subtree: true });

  async function download(form, sql, runId) {
    const body = { sql, format: form, limit: MOST_ROWS };
    if (runId) body.run_id = runId;
    const answer = await window.fetch("/v1/sql", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) {
      const told = await answer.json().catch(() => null);
      return `no file: ${told ? told.error.message : answer.statusText}`;
    }
    const address = URL.createObjectURL(await answer.blob());
    const link = document.createElement("a");
    link.href = address;
    link.download = `cascade-answer.${ENDINGS[form]}`;
    link.click();
    URL.revokeObjectURL(address);
    const rows = Number(answer.headers.get("cascade-num-rows")).toLocaleString("en");
    const more = answer.headers.get("cascade-truncated") === "true" ? "; there are more" : "";
    return `${link.download}: ${rows} rows${more}`;
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.cascade = Object.assign(window.dash_clientside.cascade || {}, {
    remember_sql(clicks, text) {
      const asked = new URLSearchParams(window.location.search);
      if (text && text.length <= LONGEST_IN_ADDRESS) asked.set("q", text);
      else asked.delete("q");
      const query = asked.toString();
      const path = window.location.pathname + (query ? `?${query}` : "");
      window.history.replaceState(window.history.state, "", path);
      return path;
    },

    download_csv(clicks, sql, runId) {
      return clicks ? download("csv", sql, runId) : window.dash_clientside.no_update;
    },

    download_arrow(clicks, sql, runId) {
      return clicks ? download("arrow", sql, runId) : window.dash_clientside.no_update;
    },
  });
})();
