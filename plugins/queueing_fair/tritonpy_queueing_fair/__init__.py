"""Weighted fair queueing and quotas between the tenants of a tritonpy server."""

from __future__ import annotations
