/* Cells that are links or numbers: drawn by React, so that a hostile name stays text. */
"use strict";

(() => {
  const components = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});

  components.CascadeLink = (props) => {
    const { text, href } = props.value || {};
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

  /** Whole numbers with separators; others as they are, with as many decimals as the column says. */
  components.CascadeNumber = (props) => {
    const { value, decimals } = props;
    if (typeof value !== "number") return value === null || value === undefined ? null : String(value);
    if (decimals !== undefined) return value.toFixed(decimals);
    return Number.isInteger(value) && Math.abs(value) >= 1000 ? value.toLocaleString("en") : String(value);
  };
})();
