"""Reports: live view, plain text, CSV, JSON, and HTML.

Start at `result`, which all reports show.
"""

from __future__ import annotations
