"""A simulated machine with GPUs and TensorRT."""

from __future__ import annotations
