"""Reports of an analysis: text for a terminal, an HTML page, CSV and JSON.

Start at `text` and `html`. They depend on a `Study` only.
"""

from __future__ import annotations
