"""Queries to the server about itself and the model.

Start at `control`.
"""

from __future__ import annotations
