"""`generate` and `generate_stream`: plain JSON of any shape to a model and back, as one document or as server-sent events."""

from __future__ import annotations
