"""What runs in a model's own interpreter: Python 3.9 and numpy suffice, tritonpy itself is not there."""

from __future__ import annotations
