"""Every page of the dashboard: its path (below the run's, or whole) and what shows that it is there."""

PAGES = {
    "run": ("", "#cascade-run .cr-run .cr-verdict-word"),
    "waits": ("/waits", ".cs-panel .js-plotly-plot .bars"),
    "violations": ("/violations", ".cs-notice, .ag-row"),
    "sql": ("/sql?q=SELECT+1+AS+one", ".ag-row"),
    "runs": ("/dash/runs", ".ag-row .cs-link"),
    "sql of all": ("/dash/sql?q=FROM+actors", ".ag-row"),
    "health": ("/dash/health", "#health .cs-notice"),
    "unknown run": ("/dash/run/nope", ".cs-notice a"),
    "nowhere": ("/dash/nope", ".cs-notice a"),
}
