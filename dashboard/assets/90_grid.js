/* Cells that are links, numbers or verdicts: drawn by React, so that a hostile name stays text. */
"use strict";

(() => {
  const components = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});

  components.CascadeLink = (props) => {
    const text = props.value;
    const href = props.data[`${props.colDef.field}_href`];
    // Only our own pages: an address from data could be javascript: or another site.
    if (typeof href !== "string" || !href.startsWith("/dash/")) return text || null;
    return window.React.createElement("a", { href, className: "cs-link", onClick: follow }, text);
  };

  /** As dcc.Link does: the address changes, the document stays. A new tab is still the browser's. */
  function follow(event) {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    history.pushState({}, "", event.currentTarget.href);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.scrollTo(0, 0);
  }

  const SIGNS = { ok: "✓", violated: "✕", unknown: "?" };

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.cascade = Object.assign(window.dash_clientside.cascade || {}, {
    /** All words of the box, in any column. */
    filter_runs(text, options) {
      return { ...options, quickFilterText: text || "" };
    },
  });

  /** A verdict, with a sign that tells it without its colour. */
  components.CascadeVerdict = ({ value }) => {
    if (typeof value !== "string") return null;
    const kind = Object.hasOwn(SIGNS, value.split(" ")[0]) ? value.split(" ")[0] : "none";
    const sign = window.React.createElement("span", { "aria-hidden": true, className: "cs-sign" }, SIGNS[kind] || "○");
    return window.React.createElement("span", { className: `cs-verdict cs-verdict-${kind}` }, sign, value);
  };

  /** Whole numbers with separators; others as they are, with as many decimals as the column says. */
  components.CascadeNumber = (props) => {
    const { value, decimals } = props;
    if (typeof value !== "number") return value === null || value === undefined ? null : String(value);
    if (decimals !== undefined) return value.toFixed(decimals);
    return Number.isInteger(value) && Math.abs(value) >= 1000 ? value.toLocaleString("en") : String(value);
  };
})();
