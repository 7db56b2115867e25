/* Plotly figures with colour tokens become figures with the colours of the theme. */
"use strict";

(() => {
  const PREFIX = "token:";

  function coloured(value, styles) {
    if (typeof value === "string") {
      if (!value.startsWith(PREFIX)) return value;
      return styles.getPropertyValue(`--${value.slice(PREFIX.length)}`).trim() || undefined;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, styles));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, coloured(item, styles)]));
    }
    return value;
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.cascade = Object.assign(window.dash_clientside.cascade || {}, {
    coloured(figure) {
      return coloured(figure, window.getComputedStyle(document.documentElement));
    },

    titled() {
      const head = document.querySelector(".cs-head");
      if (head) document.title = head.dataset.title;
      return window.dash_clientside.no_update;
    },
  });
})();
