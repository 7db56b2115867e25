/* Cells that are links: drawn by React, so that a hostile name stays text. */
"use strict";

(() => {
  const components = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});

  components.CascadeLink = (props) => {
    const { text, href } = props.value || {};
    // Only our own pages: an address from data could be javascript: or another site.
    if (typeof href !== "string" || !href.startsWith("/dash/")) return text || null;
    return window.React.createElement("a", { href, className: "cs-link" }, text);
  };
})();
