"""The busy lanes of the picture: who waited, who caused it, gpu and cpu, as tiles of any window."""

from dashboard.tiles.builder import Building
from dashboard.tiles.routes import routes
from dashboard.tiles.run_tiles import RunTiles, stop_tiles_of, tiles_of

__all__ = ["Building", "RunTiles", "routes", "stop_tiles_of", "tiles_of"]
