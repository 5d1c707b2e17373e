"""Cost and benefit of the response cache: `python -m bench.cache [--triton FILE]`.

Compares hits with misses of the same model, which sleeps for 1 ms, and with hits of the real
Triton's local cache. Then it measures the key, look-up and insertion by input size. Rows and
verdicts are as in `bench.compare`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import arguments_of, run
from bench.rows import P50, Case
from tritonpy import CallbackSink, InferRequest, Tensor
from tritonpy.model.cache_key import CacheKeyBuilder, cacheable_size
from tritonpy_cache_local.cache import LocalCache
from tritonpy_cache_local.options import LocalCacheOptions

FLAG = "--cache-config=local,size=268435456"
MISSES = "its misses"
GOAL = 3.0  # required speedup of a hit over a miss
SIZES = {"64 B": 64, "64 KiB": 1 << 16, "1 MiB": 1 << 20}


def main() -> int:
    """Run the chosen rows and print the tables; return 1 if a row fell short."""
    arguments = arguments_of(__doc__)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models.write_cached(folder)
        ours = stack.enter_context(processes.tritonpy(folder, FLAG))
        others = {MISSES: dataclasses.replace(ours, name=MISSES)}
        if arguments.triton:
            others["Triton"] = stack.enter_context(processes.triton(arguments.triton, folder, FLAG))
        status = run(arguments, cases(), {"tritonpy": ours, **others})
    print("", *costs(), sep="\n")
    return status


def cases() -> list[Case]:
    """Return all rows: hits against misses of the same server, and against Triton's hits."""
    hits = _load(payloads.add_sub("cached"))
    return [
        Case("a hit, 1 in flight, wrk p50", MISSES, hits(1), round(1 / GOAL, 2), figure=P50),
        *(Case(f"hits, {count} in flight, wrk", MISSES, hits(count), GOAL) for count in (8, 32)),
        # No model runs here: these rows compare the frontends and only give orientation.
        Case("a hit, 1 in flight, wrk p50", "Triton", hits(1), 2.0, figure=P50),
        *(Case(f"hits, {count} in flight, wrk", "Triton", hits(count), 0.8) for count in (8, 32)),
    ]


def _load(payload: payloads.Payload) -> Callable[[int], Callable[[Running, int], LoadResult]]:
    def in_flight(count: int) -> Callable[[Running, int], LoadResult]:
        def load(server: Running, seconds: int) -> LoadResult:
            script = clients.DISTINCT_BODIES if server.name == MISSES else ""
            return clients.wrk(server, payload, count, seconds, script)

        return load

    return in_flight


def costs(rounds: int = 200) -> Iterator[str]:
    """Yield a row per input size: µs for the key, for a hit, and for an insertion."""
    yield "| inputs and outputs | key, µs | look-up, µs | insertion, µs |"
    yield "|---|---|---|---|"
    for name, size in SIZES.items():
        tensor = Tensor.from_numpy(
            "INPUT0", np.random.default_rng(0).integers(0, 256, (1, size), np.uint8)
        )
        request = InferRequest(
            "m", {"INPUT0": tensor}, CallbackSink(lambda _request, _response: None)
        )
        keys, cache = CacheKeyBuilder(b"m"), LocalCache(LocalCacheOptions(size=1 << 30))
        found = keys.key(request, request.inputs)
        cache.insert(found, [tensor])
        fresh = iter(range(1 << 60))
        figures = (
            _microseconds(
                lambda: (cacheable_size(request), keys.key(request, request.inputs)),  # noqa: B023
                rounds,
            ),
            _microseconds(lambda: cache.lookup(found), rounds),  # noqa: B023
            _microseconds(lambda: cache.insert(next(fresh).to_bytes(32), [tensor]), rounds),  # noqa: B023
        )
        yield f"| {name} | " + " | ".join(f"{figure:,.1f}" for figure in figures) + " |"


def _microseconds(function: Callable[[], object], rounds: int) -> float:
    return min(timeit.repeat(function, number=rounds, repeat=3)) / rounds * 1e6


if __name__ == "__main__":
    sys.exit(main())
