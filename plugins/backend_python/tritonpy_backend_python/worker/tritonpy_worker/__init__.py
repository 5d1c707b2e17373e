"""The runtime in a model's interpreter.

It needs only Python 3.9 and numpy; tritonpy is not available.
"""

from __future__ import annotations
