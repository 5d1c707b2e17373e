"""Contract tests: one class per kind of plugin, to be subclassed as `Test…` in a plugin's own tests."""

from __future__ import annotations
