"""What the loads of all models of one server share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonpy.api.device import Device
from tritonpy.api.engine import Engine
from tritonpy.api.observer import Observer
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.sharing import WaitingQueue
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.manager import PluginManager
from tritonpy.runners.gpu_limits import GpuLimits
from tritonpy.runners.isolation import RunnerFactories
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy_config.server.sections import NO_LATENCIES, LatencySettings
from tritonpy_metrics import CustomMetrics


@dataclass(frozen=True, slots=True)
class LoadContext:
    """The services and settings that every load uses."""

    plugins: PluginManager
    backends: Backends
    engine: Engine
    timer: Timer
    wakeups: Wakeups
    runners: RunnerFactories
    metrics: CustomMetrics
    observers: Sequence[Observer]
    agents: Callable[[str], RepoAgent]
    gpus: Device
    gpu_limits: GpuLimits
    auto_complete: bool = True
    config_name: str = ""
    latencies: LatencySettings = NO_LATENCIES
    required_agents: Sequence[str] = ()
    cache: ResponseCache | None = None
    new_queue: Callable[[], WaitingQueue] | None = None
