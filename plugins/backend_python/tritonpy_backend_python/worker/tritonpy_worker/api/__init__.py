"""The objects of `triton_python_backend_utils`: plain values that reach the server through their model's host."""

from __future__ import annotations
