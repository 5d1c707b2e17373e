"""What backends of language models share: tensors, requests, responses and metrics.

A Python-based backend imports it in its worker. Start at `contract`. It imports only numpy and the
modules of the Python backend.
"""

from __future__ import annotations
