"""How Envoy's configuration names the kind of an extension."""

from __future__ import annotations

from typing import Any


def typed(kind: str, **fields: Any) -> dict[str, Any]:
    """Return the configuration of an extension; `kind` is its message below `envoy.extensions`."""
    return {"@type": f"type.googleapis.com/envoy.extensions.{kind}", **fields}
