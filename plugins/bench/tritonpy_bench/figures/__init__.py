"""What was counted: histograms, snapshots, stability, the server's own figures."""

from __future__ import annotations
