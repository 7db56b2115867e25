"""One run as one HTML file that opens without a server and without a network.

``Gathered`` reads a run to its end, ``composed`` makes the file's text of it, ``written`` puts it on disk.
"""

from __future__ import annotations

from dashboard.report.compose import Composed, composed
from dashboard.report.gather import Gathered, gathered
from dashboard.report.write import checked_target, written

__all__ = ["Composed", "Gathered", "checked_target", "composed", "gathered", "written"]
