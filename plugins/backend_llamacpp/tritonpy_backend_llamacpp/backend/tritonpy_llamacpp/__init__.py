"""The parts of the llama.cpp backend: engine, requests, settings.

`model.py` in the folder above uses them. They run in the worker of a model.
"""

from __future__ import annotations
