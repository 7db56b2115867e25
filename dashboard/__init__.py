"""The composition root: what people see, and the ``cascade`` command."""

__dist__ = "cascade-timelines"
