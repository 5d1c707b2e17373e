"""Validation of a model configuration; it reports all problems at once.

Each rule is a generator of problems of an `inference.ModelConfig`. The texts are Triton's.
"""

from __future__ import annotations

from tritonpy_config.validate.rules import validate

__all__ = ["validate"]
