"""What is counted for one model version. The counters live here once; statistics and metrics only read them.

Counts and sums are plain numbers that every request pays for. What is known of single answers (`AnswerStatistics`) costs a request only where
its model is decoupled, or where the server was told to measure distributions.
"""

from __future__ import annotations

from tritonpy.statistics.answers import AnswerStatistics
from tritonpy.statistics.counters import Counters, Succeeded

__all__ = ["AnswerStatistics", "Counters", "Succeeded"]
