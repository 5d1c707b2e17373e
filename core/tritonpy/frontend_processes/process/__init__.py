"""What runs in a frontend process: frontends, in front of an engine that is elsewhere."""

from __future__ import annotations
