"""Counters of one model version, which statistics and metrics read.

Start at `counters`: plain numbers that every request updates. `PerResponseStatistics` costs
requests only if the model is decoupled, or if the server measures latency distributions. It may
import `api` and `types`.
"""

from __future__ import annotations

from tritonpy.statistics.counters import Counters, SucceededRequests
from tritonpy.statistics.per_response import PerResponseStatistics

__all__ = ["Counters", "PerResponseStatistics", "SucceededRequests"]
