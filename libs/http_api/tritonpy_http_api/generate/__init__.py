"""The `generate` and `generate_stream` calls.

They read plain JSON and respond with one JSON document or server-sent events.
"""

from __future__ import annotations
