"""Cost of decoding and encoding strings alone, without server, process or socket."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median

from bench import payloads
from bench.clients import LoadResult
from bench.processes import Running

RUNNING = Running("codec alone", os.getpid())
_WORKER = (
    Path(__file__).resolve().parent.parent / "plugins/backend_python/tritonpy_backend_python/worker"
)


def load(seconds: int) -> LoadResult:
    """Return the median time to decode and encode the 10,000 strings of a request."""
    sys.path.append(str(_WORKER))
    import numpy as np

    from tritonpy_worker.api import strings

    payload = payloads.strings()
    wire = np.frombuffer(payload.body, np.uint8, offset=payload.header_length)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        strings.encode(strings.decode(wire, (1, payloads.STRINGS)))
        times.append(1e6 * (time.perf_counter() - begin))
    return LoadResult(len(times) / seconds, median(times), median(times))
