"""The process that starts Envoy and watches over it."""

from __future__ import annotations
