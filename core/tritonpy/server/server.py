"""Builds a server from its configuration and runs it from start to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tritonpy.api.device import Device, NoDevice
from tritonpy.api.engine import Engine, ServerMetadata
from tritonpy.api.frontend import Frontend
from tritonpy.api.frontend_host import FrontendHost, FrontendHostContext
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.local import EXTENSIONS, LocalEngine
from tritonpy.engine.router_chain import RouterChain, make_router_chain
from tritonpy.logs import terminal_columns
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy.plugins.backends import Backends
from tritonpy.repository.index_report import index_as_dicts, index_as_table
from tritonpy.repository.load_context import LoadContext
from tritonpy.repository.manager import ModelEvents, RepositoryManager
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_table import ModelTable, NamespacedTable
from tritonpy.repository.poller import Poller
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.gpu_limits import GpuLimits
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.isolation import RunnerFactories
from tritonpy.runners.runner import RunnerServices
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy.server.factories import (
    make_agents,
    make_authorizer,
    make_cache,
    make_frontends,
    make_gpus,
    make_limiter,
    make_observers,
    make_sharing,
    make_tracing,
    open_repositories,
)
from tritonpy.server.interpreter import prepare_interpreter, release_interpreter, settle_interpreter
from tritonpy.shared_memory import Regions
from tritonpy.tracing.tracing import Tracing
from tritonpy.version import SERVER_VERSION
from tritonpy_config.backend_folders import BackendFolders
from tritonpy_config.redacted_urls import redact_urls
from tritonpy_config.server import ServerConfig
from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_network.request_memory import request_memory
from tritonpy_types.errors import StartupError, TritonError, Unavailable

if TYPE_CHECKING:
    from tritonpy.auth.authorizer import Authorizer
    from tritonpy.server.single_port import SinglePort

log = logging.getLogger("tritonpy.server")

# Maximum threads for instances without their own thread. More would only compete for the processor.
EXECUTION_THREADS = 256
BACKGROUND_THREADS = 4
# share of the exit timeout: a client may never stop sending, and requests need time, too
_CONNECTIONS_SHARE = 0.8
# added before the remaining time is truncated to whole seconds: hides the time already spent
_ROUNDING_S = 0.04
_SEQUENCES_SHARE = 0.8  # share of the exit timeout for live sequences; requests need time, too


class Server:
    """A server that is built but not started.

    It installs no signal handlers and creates no event loop. `start`, `drain` and `stop` are called
    in this order on one event loop, which belongs to the host: the command line or an embedding
    transport. After `start`, `failures` maps the models that did not load to their errors.
    `failure` is the reason why the server is not live, if `exit_on_error` is false and a repository
    cannot be read.
    """

    def __init__(
        self,
        config: ServerConfig,
        plugins: PluginManager,
        engine: LocalEngine,
        repository: RepositoryManager,
        frontends: dict[str, Frontend],
        observers: Sequence[Observer],
        timer: Timer,
        wakeups: Wakeups,
        authorizer: Authorizer | None = None,
        cache: ResponseCache | None = None,
        gpus: Device | None = None,
        front: RouterChain | None = None,
        threads: Sequence[ThreadPool] = (),
        single_port: SinglePort | None = None,
        runners: RunnerFactories | None = None,
    ) -> None:
        self.config = config
        self.plugins = plugins
        self._routers = front or RouterChain(engine, [])
        self.engine: Engine = self._routers.engine
        self._local = engine
        self.frontends = frontends
        self.failures: dict[str, TritonError] = {}
        self.failure = ""
        self._repository = repository
        self._observers = observers
        self._timer = timer
        self._wakeups = wakeups
        self._authorizer = authorizer
        self._cache = cache
        self._gpus = gpus or NoDevice()
        self._threads = threads
        self._single_port = single_port
        self._runners = runners
        self._poller = Poller(repository.poll, config.control.interval_s)
        self._started: list[Frontend] = []

    async def start(self) -> None:
        """Listen, load the models, and become ready.

        The ports are bound first, so that one in use is found at once. Until the models are loaded,
        the server responds to health requests and refuses others as not ready.

        Raises StartupError for a port in use and, unless `exit_on_error` is false, for an
        unreadable repository or a model that failed to load. Call `stop` then.
        """
        prepare_interpreter()
        loop = asyncio.get_running_loop()
        self._wakeups.attach(loop)
        loading = loop.run_in_executor(None, self._load_models)
        try:
            await self._listen()
        except BaseException:
            self._local.state = ServerState.EXITING
            self._repository.stop_loading()
            raise
        finally:
            self.failures = await loading
        if self.failures and self.config.exit_on_error:
            raise StartupError(
                f"failed to load all models: {', '.join(sorted(self.failures))}. "
                "Repair or remove them (tritonpy lint lists every mistake), "
                "or serve what does load with --exit-on-error=false."
            )
        if self.failure:
            return
        settle_interpreter()
        self._local.state = ServerState.READY
        for frontend in self._started:
            await frontend.serving()
        if self.config.control.mode == "poll":
            await asyncio.to_thread(self._repository.watch, self._poller.wake)
            self._poller.start()
        _call_hook(self.plugins.hook.tritonpy_server_started, engine=self.engine)

    def poll(self) -> None:
        """Apply the changes of the repositories. Raises Unavailable in another control mode."""
        if self.config.control.mode != "poll":
            raise Unavailable("polling is disabled")
        self._repository.poll()

    async def _listen(self) -> None:
        if self._authorizer is not None:
            await asyncio.to_thread(self._authorizer.start)
        if self._single_port is not None:
            self._single_port.bind()
        for name, frontend in self.frontends.items():
            await frontend.start(self.engine)
            self._started.append(frontend)
            log.info("%s listens on %s", name, frontend.address())
        if self._single_port is not None:
            self._single_port.serve(self.frontends)
        if (
            "metrics" in self.frontends
            and self._authorizer is not None
            and self._authorizer.guards("metrics")
        ):
            log.info(
                "metrics need credentials: give Prometheus a key or token with the right 'read' "
                "on '*', "
                "or write 'access: {open: [health, metrics]}' in server.yaml"
            )

    async def stop_accepting(self, timeout_s: float) -> float:
        """Refuse new connections, serve the open ones for a while, and return the time left.

        As in Triton, a client that keeps using its connection is served until it disconnects, but
        for at most 80 % of `timeout_s`.
        """
        loop = asyncio.get_running_loop()
        begun, limit_s = loop.time(), timeout_s * _CONNECTIONS_SHARE
        await asyncio.gather(
            *(frontend.stop_accepting(timeout_s, limit_s) for frontend in self._started)
        )
        return max(timeout_s - (loop.time() - begun), 0)

    async def drain(self, timeout_s: float | None = None) -> bool:
        """Refuse new requests and wait for those in flight; return False after `timeout_s`.

        Requests of live sequences are accepted until the sequences end, for most of that time.
        """
        _call_hook(self.plugins.hook.tritonpy_server_stopping, engine=self.engine)
        timeout_s = self.config.exit_timeout_s if timeout_s is None else timeout_s
        self._log_in_flight(timeout_s)
        self._local.state = ServerState.EXITING
        self._poller.finish()
        self._repository.stop_loading()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        await asyncio.to_thread(self._repository.wait_for_sequences, timeout_s * _SEQUENCES_SHARE)
        try:
            async with asyncio.timeout(max(deadline - loop.time(), 0)):
                await asyncio.gather(*(frontend.drain() for frontend in self._started))
        except TimeoutError:
            log.warning("some connections were still busy after %.1f s", timeout_s)
        await asyncio.to_thread(self._poller.stop)
        return await asyncio.to_thread(self._repository.stop, max(deadline - loop.time(), 0))

    def _log_in_flight(self, timeout_s: float) -> None:
        """Log Triton's lines at the start of a shutdown; tools search for them."""
        found = self._repository.in_flight()
        log.info("Waiting for in-flight requests to complete.")
        log.info(
            "Timeout %d: Found %d model versions that have in-flight inferences",
            timeout_s + _ROUNDING_S,
            len(found),
        )
        for name, version, count in found:
            log.info("Model '%s' (version %d) has %d in-flight inferences", name, version, count)

    async def stop(self) -> None:
        """Close every port and release everything; safe after a failed `start`."""
        self._local.state = ServerState.EXITING
        self._wakeups.detach()
        await asyncio.to_thread(self._poller.stop)
        if self._single_port is not None:
            await self._single_port.close()
        await asyncio.gather(*(self._stop(frontend) for frontend in self._started))
        await asyncio.to_thread(self._repository.stop, 0)
        self._gpus.close()
        await asyncio.to_thread(self._timer.stop)
        for threads in self._threads:
            await asyncio.to_thread(threads.close)
        await asyncio.to_thread(self._repository.close)
        await asyncio.to_thread(self._routers.close)
        await asyncio.to_thread(self._local.close)
        if self._cache is not None:
            await asyncio.to_thread(self._cache.close)
        for observer in self._observers:
            observer.close()
        if self._authorizer is not None:
            await asyncio.to_thread(self._authorizer.close)
        if self._runners is not None:
            await asyncio.to_thread(self._runners.close)
        release_interpreter()

    @staticmethod
    async def _stop(frontend: Frontend) -> None:
        try:
            await frontend.stop()
        except Exception:
            log.exception("%s failed to stop", type(frontend).__name__)

    def _load_models(self) -> dict[str, TritonError]:
        control = self.config.control
        names = None if control.mode != "explicit" or control.load == ["*"] else control.load
        try:
            failures = self._repository.load_all(names)
            index = self._repository.index(ready=False)
        except TritonError as error:
            if self.config.exit_on_error:
                raise StartupError(error.message) from error
            self._local.failed, self.failure = True, error.message
            return {}
        if self._local.state is ServerState.EXITING:
            # The reason of the exit is logged separately. Unloaded models need no table.
            return failures
        if index:
            log.info(
                "models:",
                extra={
                    "table": index_as_table(index, terminal_columns()),
                    "models": index_as_dicts(index),
                },
            )
        else:
            urls = ", ".join(redact_urls(repository.url) for repository in self.config.repositories)
            log.warning(
                (
                    "no models in %s: a model is a folder with a version folder in it, "
                    "such as digits/1/model.onnx"
                ),
                urls,
            )
        return failures


def build(
    config: ServerConfig, plugins: PluginManager | None = None, limiter: RateLimiter | None = None
) -> Server:
    """Return a server with the parts that `config` names; nothing runs yet.

    Raises StartupError (PluginError, InvalidServerConfig) for missing plugins and for wrong
    options. The error lists all wrong options of a plugin.
    """
    plugins = plugins or make_plugin_manager(disable=config.plugins.disable)
    table = NamespacedTable() if config.model_namespacing else ModelTable()
    timer, wakeups, metrics = Timer(), Wakeups(), CustomMetrics()
    graph = CallGraph(table.config)
    tracing = make_tracing(config.trace, plugins)
    gpus = make_gpus(config, plugins, metrics)
    engine = _engine(config, plugins, table, metrics, graph, tracing, gpus)
    observers = make_observers(config, plugins)
    pools = ThreadPool("execution", EXECUTION_THREADS), ThreadPool("background", BACKGROUND_THREADS)
    limiter, policies = limiter or make_limiter(config, plugins), HostPolicies(config.host_policies)
    services = RunnerServices(table.config, graph, limiter, wakeups, *pools, policies)
    runners = RunnerFactories(plugins, services)
    cache = make_cache(config, plugins, timer, metrics)
    sharing = make_sharing(config, plugins, metrics)
    agents, new_queue = make_agents(config, plugins), None if sharing is None else sharing.new_queue
    load_context = LoadContext(
        plugins=plugins,
        backends=_backends(config, plugins),
        engine=engine,
        timer=timer,
        wakeups=wakeups,
        runners=runners,
        metrics=metrics,
        observers=observers,
        agents=agents,
        required_agents=config.required_repo_agents,
        gpus=gpus,
        gpu_limits=GpuLimits(gpus),
        auto_complete=not config.disable_auto_complete,
        config_name=config.model_config_name,
        latencies=config.latencies,
        cache=cache,
        new_queue=new_queue,
    )
    host = _frontend_host(config, plugins, tracing, metrics)
    repository = _repository(config, plugins, table, load_context, host)
    engine.attach(repository)
    engine.offer(repository.operations())
    if sharing is not None:
        engine.share(sharing)
    authorizer = make_authorizer(config, plugins, ModelMetrics(metrics))
    front = make_router_chain(engine, config, plugins, metrics)
    memory, single_port = request_memory(config.request_memory), _single_port(config)
    if host is None:  # otherwise each frontend process reports its own memory
        metrics.add_source(memory.metrics)
    headers = front.headers if sharing is None else front.headers | sharing.headers()
    frontends = make_frontends(
        config, plugins, authorizer, tracing, headers, metrics, memory, gpus, single_port
    )
    frontends = frontends if host is None else host.host(frontends)
    made = observers, timer, wakeups, authorizer, cache, gpus, front, pools, single_port, runners
    return Server(config, plugins, engine, repository, frontends, *made)


def _backends(config: ServerConfig, plugins: PluginManager) -> Backends:
    in_plugins = plugins.table("tritonpy_backend_folders")
    folders = BackendFolders.with_plugins(config.backend_directory, in_plugins)
    backends = Backends(plugins, config.backends, config.backend_defaults, folders)
    backends.check_options()
    return backends


def _engine(
    config: ServerConfig,
    plugins: PluginManager,
    table: ModelTable,
    metrics: CustomMetrics,
    graph: CallGraph,
    tracing: Tracing,
    gpus: Device,
) -> LocalEngine:
    sequences = "sequence" in plugins.table("tritonpy_schedulers")
    extensions = [name for name in EXTENSIONS if sequences or name != "sequence"]
    metadata = ServerMetadata(config.id, SERVER_VERSION, extensions)
    explicit, regions = config.control.mode == "explicit", Regions(config.allow_client_shm, gpus)
    return LocalEngine(
        table, metrics, graph, metadata, explicit, config.strict_readiness, regions, tracing
    )


def _repository(
    config: ServerConfig,
    plugins: PluginManager,
    table: ModelTable,
    load_context: LoadContext,
    host: FrontendHost | None,
) -> RepositoryManager:
    return RepositoryManager(
        open_repositories(config, plugins),
        table,
        ModelLoader(load_context),
        _events(plugins, host),
        config.control.threads,
        config.control.retries,
        config.model_namespacing,
        config.memory,
        config.control.load_timeout_s,
    )


def _frontend_host(
    config: ServerConfig, plugins: PluginManager, tracing: Tracing, metrics: CustomMetrics
) -> FrontendHost | None:
    if not config.frontend_processes:
        return None
    kind = plugins.get("tritonpy_frontend_hosts", "processes", "frontend host").load()
    host: FrontendHost = kind(FrontendHostContext(config, tracing, metrics))
    return host


def _single_port(config: ServerConfig) -> SinglePort | None:
    if config.single_port is None:
        return None
    from tritonpy.server.single_port import SinglePort

    return SinglePort(config.host, config.single_port)


def _events(plugins: PluginManager, host: FrontendHost | None) -> ModelEvents:
    def loaded(model: LoadedModel) -> None:
        if host is not None:
            host.models_changed()
        _call_hook(
            plugins.hook.tritonpy_model_loaded,
            name=model.name,
            version=model.version,
            config=model.config,
        )

    def unloaded(model: LoadedModel) -> None:
        if host is not None:
            host.models_changed()
        _call_hook(
            plugins.hook.tritonpy_model_unloaded,
            name=model.name,
            version=model.version,
            config=model.config,
        )

    return ModelEvents(loaded, unloaded)


def _call_hook(hook: Any, **event: Any) -> None:
    """Call an event hook; the exception of a plugin is logged and does not propagate."""
    try:
        hook(**event)
    except Exception:
        log.exception("a plugin failed in the hook %s", hook.name)
