"""A machine with GPUs and TensorRT that are not there."""

from __future__ import annotations
