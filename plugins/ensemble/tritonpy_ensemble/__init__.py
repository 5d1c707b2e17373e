"""Ensembles for tritonpy: models joined into one by the tensors that they hand on."""

from __future__ import annotations
