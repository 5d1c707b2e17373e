"""Everything that can be wrong with one model's configuration, all of it at once.

Each rule is a generator of problems over an `inference.ModelConfig`; their texts are Triton's.
"""

from __future__ import annotations

from tritonpy.config.validate.rules import validate

__all__ = ["validate"]
