"""The rules: one file is one rule, found by looking (cascade_runtime.vocabulary.plug)."""
