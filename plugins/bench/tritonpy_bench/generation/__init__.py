"""Benchmarks of language models: tokens, and the time of each, over OpenAI's API or generate.

Start at `benchmark`.
"""

from __future__ import annotations
