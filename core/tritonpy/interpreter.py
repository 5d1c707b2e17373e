"""Settings of the Python interpreter that serve a server, chosen by measurement (see bench/)."""

from __future__ import annotations

import gc
import sys

# A thread that comes back from a framework waits this long for the interpreter at most. The default of 5 ms is long
# beside an inference of 50 us.
SWITCH_INTERVAL_S = 0.0005
# Objects between two looks at the youngest generation: a batch of 64 requests makes some 2,000.
GC_THRESHOLD = 20_000


def prepare_interpreter() -> None:
    """Set the switch interval and the rhythm of the garbage collector."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(GC_THRESHOLD, 50, 50)


def settle_interpreter() -> None:
    """Take what start-up made out of the garbage collector's sight: it lives as long as the server."""
    gc.collect()
    gc.freeze()


def release_interpreter() -> None:
    """Give what start-up made back to the garbage collector: the server is gone, its host may live on."""
    gc.unfreeze()
