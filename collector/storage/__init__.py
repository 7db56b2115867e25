"""Where live rows are kept: the ``EventStore`` interface, and a file for each kind of store."""
