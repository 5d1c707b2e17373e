"""The objects of `triton_python_backend_utils`.

They reach the server through their model's host.
"""

from __future__ import annotations
