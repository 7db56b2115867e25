__dist__ = "cascade-timelines"
