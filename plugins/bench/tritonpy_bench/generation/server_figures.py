"""Figures of the server during a level, from its metrics: queue, prefill, cache, preemptions."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Mapping
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from tritonpy_load_generator.options import BadUsage

_PREFIXES = ("vllm:", "nv_generation_")
_INTERVAL_S = 0.5
_TIMEOUT_S = 5.0
# Names without prefix: the mean of a histogram in ms, the increase of a counter, and gauges.
_MEANS = {
    "request_queue_time_seconds": "queue_ms",
    "request_prefill_time_seconds": "prefill_ms",
    "request_decode_time_seconds": "decode_ms",
}
_INCREASES = {
    "prefix_cache_queries": "prefix_queries",
    "prefix_cache_hits": "prefix_hits",
    "num_preemptions": "preemptions",
}
_GAUGES = {
    "kv_cache_usage_perc": "kv_cache",
    "num_requests_waiting": "waiting",
    "num_requests_running": "running",
}


class ServerFigures:
    """Reads the metrics before, during and after a level. Use it as a context manager.

    `figures` then has means and increases by name, and for each gauge its mean and maximum. Without
    a URL it is empty. Raises BadUsage if the metrics cannot be read.
    """

    def __init__(self, url: str) -> None:
        self._url = url if not url or "//" in url else f"http://{url}"
        self._samples: list[Mapping[str, float]] = []
        self._sampling: asyncio.Task[None] | None = None
        self.figures: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        if self._url:
            await self._sample()
            self._sampling = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sampling is None:
            return
        self._sampling.cancel()
        await asyncio.wait([self._sampling])
        await self._sample()
        self.figures = _figures(self._samples)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            await self._sample()

    async def _sample(self) -> None:
        self._samples.append(await asyncio.to_thread(_read, self._url))


def _read(url: str) -> dict[str, float]:
    """Return the sums of all samples by name without prefix. vLLM's names have precedence."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:  # noqa: S310 - the user's
            text = response.read().decode("utf-8")
        families = list(text_string_to_metric_families(text))
    except (OSError, ValueError) as error:
        raise BadUsage(f"--metrics-url {url}: {error}") from error
    for prefix in _PREFIXES:
        found: dict[str, float] = {}
        for family in families:
            for sample in family.samples:
                if sample.name.startswith(prefix):
                    name = sample.name.removeprefix(prefix)
                    found[name] = found.get(name, 0.0) + sample.value
        if found:
            return found
    raise BadUsage(f"--metrics-url {url} has no metrics of language models")


def _figures(samples: list[Mapping[str, float]]) -> dict[str, float]:
    first, last = samples[0], samples[-1]

    def increase(name: str) -> float:
        return last.get(name, 0.0) - first.get(name, 0.0)

    found = {}
    for name, own in _MEANS.items():
        count = increase(f"{name}_count")
        if count:
            found[own] = 1000 * increase(f"{name}_sum") / count
    for name, own in _INCREASES.items():
        if f"{name}_total" in last:
            found[own] = increase(f"{name}_total")
    for name, own in _GAUGES.items():
        values = [each[name] for each in samples if name in each]
        if values:
            found[f"{own}_mean"] = sum(values) / len(values)
            found[f"{own}_max"] = max(values)
    return found
