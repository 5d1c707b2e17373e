"""Contract tests: one class per kind of plugin.

A plugin's tests derive `Test…` classes from them.
"""

from __future__ import annotations
