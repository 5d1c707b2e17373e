"""What the loads of all models of one server share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tritonpy.api.device import Device
from tritonpy.api.engine import Engine
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.sharing import WaitingQueue
from tritonpy.config.server.latency_settings import NO_LATENCIES, LatencySettings
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.manager import PluginManager
from tritonpy.runners.gpu_limits import GpuLimits
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy.runners.workers.worker_registry import WorkerRegistry

# Maximum threads for instances without their own thread. More would only compete for the processor.
EXECUTION_THREADS = 256
BACKGROUND_THREADS = 4


@dataclass(frozen=True, slots=True)
class LoadContext:
    """The services and settings that every load uses.

    `threads` execute for instances without their own thread. `background` runs queries that no
    request waits for.
    """

    plugins: PluginManager
    backends: Backends
    engine: Engine
    timer: Timer
    wakeups: Wakeups
    limiter: RateLimiter
    registry: WorkerRegistry
    metrics: CustomMetrics
    observers: Sequence[Observer]
    agents: Callable[[str], RepoAgent]
    gpus: Device
    gpu_limits: GpuLimits
    threads: ThreadPool = field(default_factory=lambda: ThreadPool("execution", EXECUTION_THREADS))
    background: ThreadPool = field(default_factory=lambda: ThreadPool("background", BACKGROUND_THREADS))
    auto_complete: bool = True
    config_name: str = ""
    latencies: LatencySettings = NO_LATENCIES
    required_agents: Sequence[str] = ()
    cache: ResponseCache | None = None
    new_queue: Callable[[], WaitingQueue] | None = None
    host_policies: HostPolicies = field(default_factory=HostPolicies)
