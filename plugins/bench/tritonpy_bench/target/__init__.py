"""What the server says of itself and of the model."""

from __future__ import annotations
