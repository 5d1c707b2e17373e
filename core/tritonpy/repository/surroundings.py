"""What the models of one server have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tritonpy.api.engine import Engine
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.sharing import Line
from tritonpy.config.server.latency_settings import NO_LATENCIES, LatencySettings
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.manager import PluginManager
from tritonpy.repository.gpus import Gpus
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.rings import Rings
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.timer import Timer
from tritonpy.runners.workers.neighbours import Neighbours

# Threads that execute for instances without a thread of their own, however many instances there are: more would only take the processor from each other.
EXECUTION_THREADS = 256
BACKGROUND_THREADS = 4


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every model of a server shares.

    `threads` are those that instances without a thread of their own execute on; `background` is for questions that no request waits for.
    """

    plugins: PluginManager
    backends: Backends
    engine: Engine
    timer: Timer
    rings: Rings
    limiter: RateLimiter
    neighbours: Neighbours
    metrics: CustomMetrics
    observers: Sequence[Observer]
    agents: Callable[[str], RepoAgent]
    gpus: Gpus
    threads: ThreadPool = field(default_factory=lambda: ThreadPool("execution", EXECUTION_THREADS))
    background: ThreadPool = field(default_factory=lambda: ThreadPool("background", BACKGROUND_THREADS))
    auto_complete: bool = True
    config_name: str = ""
    latencies: LatencySettings = NO_LATENCIES
    required_agents: Sequence[str] = ()
    cache: ResponseCache | None = None
    line: Callable[[], Line] | None = None
    host_policies: HostPolicies = field(default_factory=HostPolicies)
