"""The pages around the picture: Dash inside the collector's app, sign-in, charts, the SQL box."""
