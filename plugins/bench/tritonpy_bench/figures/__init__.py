"""Measured values: histograms, snapshots, stability, and the server's statistics."""

from __future__ import annotations
