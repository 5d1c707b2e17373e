"""What the response cache costs and saves: `python -m bench.cache [--triton FILE]`.

Hits against the misses of the same model, which sleeps for 1 ms, and against the hits of the real Triton's local cache; then what a request pays for its key
and its look-up, by the size of its inputs. Rows and verdicts are those of `bench.compare`.
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
from bench.clients import Load
from bench.processes import Running
from bench.program import arguments_of, run
from bench.rows import P50, Case
from tritonpy import CallbackSink, InferRequest, Tensor
from tritonpy.model.cache_key import KeyMaker, cacheable_size
from tritonpy_cache_local.cache import LocalCache
from tritonpy_cache_local.options import LocalCacheOptions

FLAG = "--cache-config=local,size=268435456"
MISSES = "its misses"
GOAL = 3.0  # how much faster a hit is than a miss
SIZES = {"64 B": 64, "64 KiB": 1 << 16, "1 MiB": 1 << 20}


def main() -> int:
    """Run the chosen rows and print the tables; 1 when a row fell short."""
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
    """Return every row: hits against misses of the same server, and against Triton's hits."""
    hits = _load(payloads.add_sub("cached"))
    return [
        Case("a hit, 1 in flight, wrk p50", MISSES, hits(1), round(1 / GOAL, 2), figure=P50),
        *(Case(f"hits, {count} in flight, wrk", MISSES, hits(count), GOAL) for count in (8, 32)),
        # No model takes part: these two compare the servers' front doors, and are a bearing more than a goal.
        Case("a hit, 1 in flight, wrk p50", "Triton", hits(1), 2.0, figure=P50),
        *(Case(f"hits, {count} in flight, wrk", "Triton", hits(count), 0.8) for count in (8, 32)),
    ]


def _load(payload: payloads.Payload) -> Callable[[int], Callable[[Running, int], Load]]:
    def in_flight(count: int) -> Callable[[Running, int], Load]:
        return lambda server, seconds: clients.wrk(server, payload, count, seconds, counted=server.name == MISSES)

    return in_flight


def costs(turns: int = 200) -> Iterator[str]:
    """Yield a line per size of the inputs: µs for the key, for a look-up that finds an answer of that size, and for its insertion."""
    yield "| inputs and outputs | key, µs | look-up, µs | insertion, µs |"
    yield "|---|---|---|---|"
    for name, size in SIZES.items():
        tensor = Tensor.from_numpy("INPUT0", np.random.default_rng(0).integers(0, 256, (1, size), np.uint8))
        request = InferRequest("m", {"INPUT0": tensor}, CallbackSink(lambda _request, _response: None))
        keys, cache = KeyMaker(b"m"), LocalCache(LocalCacheOptions(size=1 << 30))
        found = keys.key(request, request.inputs)
        cache.insert(found, [tensor])
        fresh = iter(range(1 << 60))
        figures = (
            _microseconds(lambda: (cacheable_size(request), keys.key(request, request.inputs)), turns),  # noqa: B023
            _microseconds(lambda: cache.lookup(found), turns),  # noqa: B023
            _microseconds(lambda: cache.insert(next(fresh).to_bytes(32), [tensor]), turns),  # noqa: B023
        )
        yield f"| {name} | " + " | ".join(f"{figure:,.1f}" for figure in figures) + " |"


def _microseconds(act: Callable[[], object], turns: int) -> float:
    return min(timeit.repeat(act, number=turns, repeat=3)) / turns * 1e6


if __name__ == "__main__":
    sys.exit(main())
