"""Pure judges of signals: one file a detector, each with a ``PLUGIN``. The clock is passed in."""
