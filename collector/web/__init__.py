"""The HTTP doorway: routes, limits, tokens, one error shape."""
