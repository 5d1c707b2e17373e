"""The parts of the vLLM backend: engine, requests, responses, metrics.

`model.py` in the folder above uses them. They run in the worker of a model.
"""

from __future__ import annotations
