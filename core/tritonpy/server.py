"""Puts a server together from its configuration, and runs it from start to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tritonpy.api.engine import Engine, ServerMetadata
from tritonpy.api.frontend import Frontend
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.version import SERVER_VERSION
from tritonpy.config.server import ServerConfig
from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.engine.front import Front, make_front
from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.local import EXTENSIONS, LocalEngine
from tritonpy.errors import StartupError, TritonError
from tritonpy.interpreter import prepare_interpreter, release_interpreter, settle_interpreter
from tritonpy.logs import terminal_columns
from tritonpy.model.loaded import LoadedModel
from tritonpy.model.response_cache import ResponseCache
from tritonpy.parts import (
    make_agents,
    make_cache,
    make_frontends,
    make_gatekeeper,
    make_limiter,
    make_observers,
    make_sharing,
)
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.python_based import BackendFolders
from tritonpy.repository.gpus import Gpus
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.manager import ModelEvents, RepositoryManager
from tritonpy.repository.namespaces import NamespacedTable
from tritonpy.repository.opening import open_repositories
from tritonpy.repository.polling import Polling
from tritonpy.repository.report import models_of, table_of
from tritonpy.repository.surroundings import Surroundings
from tritonpy.repository.table import ModelTable
from tritonpy.request_memory import request_memory
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.rings import Rings
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.timer import Timer
from tritonpy.runners.workers.neighbours import Neighbours
from tritonpy.shared_memory import Regions
from tritonpy.shown_urls import without_secrets
from tritonpy.tracing.setup import make_tracing
from tritonpy.tracing.tracing import Tracing

if TYPE_CHECKING:
    from tritonpy.access.gatekeeper import Gatekeeper
    from tritonpy.frontend_processes.fleet import Fleet
    from tritonpy.listening.single_port import SinglePort

log = logging.getLogger("tritonpy.server")

_FOR_CONNECTIONS = 0.8  # of the exit timeout: a client may never stop to send, and requests need time too
_SPENT_S = 0.04  # a countdown of whole seconds goes on where this much of the first one is gone
_FOR_SEQUENCES = 0.8  # of the exit timeout: a sequence may never end, and requests need time too


class Server:
    """A server that is put together and not started. It installs no signal handler and creates no event loop.

    `start`, `drain` and `stop` are called in this order on one event loop, which belongs to the host: the command line, or an
    embedding transport. `failures` names, after `start`, the models that did not load and why; `failure` says why the server is
    not live, where `exit_on_error` is false and a repository cannot be read.
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
        rings: Rings,
        gatekeeper: Gatekeeper | None = None,
        cache: ResponseCache | None = None,
        gpus: Gpus | None = None,
        front: Front | None = None,
        threads: Sequence[ThreadPool] = (),
        single_port: SinglePort | None = None,
    ) -> None:
        self.config = config
        self.plugins = plugins
        self._front = front or Front(engine, [])
        self.engine: Engine = self._front.engine
        self._local = engine
        self.frontends = frontends
        self.failures: dict[str, TritonError] = {}
        self.failure = ""
        self._repository = repository
        self._observers = observers
        self._timer = timer
        self._rings = rings
        self._gatekeeper = gatekeeper
        self._cache = cache
        self._gpus = gpus or Gpus()
        self._threads = threads
        self._single_port = single_port
        self._polling = Polling(repository.poll, config.control.interval_s)
        self._started: list[Frontend] = []

    async def start(self) -> None:
        """Listen, load the models, and become ready.

        The ports are taken first, so that a taken one is found at once; until the models are loaded the server answers health requests and
        refuses others as not ready. Raises StartupError for a taken port and (unless `exit_on_error` is false) an unreadable repository or a model that
        failed to load; then call `stop`.
        """
        prepare_interpreter()
        loop = asyncio.get_running_loop()
        self._rings.attach(loop)
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
                f"failed to load all models: {', '.join(sorted(self.failures))}. Repair or remove them, "
                "or serve what does load with --exit-on-error=false."
            )
        if self.failure:
            return
        settle_interpreter()
        self._local.state = ServerState.READY
        for frontend in self._started:
            await frontend.serving()
        if self.config.control.mode == "poll":
            await asyncio.to_thread(self._repository.watch, self._polling.wake)
            self._polling.start()
        _tell(self.plugins.hook.tritonpy_server_started, engine=self.engine)

    async def _listen(self) -> None:
        if self._gatekeeper is not None:
            await asyncio.to_thread(self._gatekeeper.start)
        if self._single_port is not None:
            self._single_port.bind()
        for name, frontend in self.frontends.items():
            await frontend.start(self.engine)
            self._started.append(frontend)
            log.info("%s listens on %s", name, frontend.address())
        if self._single_port is not None:
            self._single_port.serve(self.frontends)
        if "metrics" in self.frontends and self._gatekeeper is not None and self._gatekeeper.guards("metrics"):
            log.info(
                "metrics need credentials: give Prometheus a key or token with the right 'read' on '*', "
                "or write 'access: {open: [health, metrics]}' in server.yaml"
            )

    async def wind_down(self, timeout_s: float) -> float:
        """Refuse new connections and serve those that clients use, for most of `timeout_s` at most; return what is left of it.

        As in Triton, a client that keeps its connection is served until it leaves, and nothing is refused there before.
        """
        loop = asyncio.get_running_loop()
        begun, limit_s = loop.time(), timeout_s * _FOR_CONNECTIONS
        await asyncio.gather(*(frontend.wind_down(timeout_s, limit_s) for frontend in self._started))
        return max(timeout_s - (loop.time() - begun), 0)

    async def drain(self, timeout_s: float | None = None) -> bool:
        """Refuse new requests and wait until the live ones are answered; False when `timeout_s` passed before.

        Where sequences live, their requests are taken until they end, for most of that time.
        """
        _tell(self.plugins.hook.tritonpy_server_stopping, engine=self.engine)
        timeout_s = self.config.exit_timeout_s if timeout_s is None else timeout_s
        self._log_in_flight(timeout_s)
        self._local.state = ServerState.EXITING
        self._polling.finish()
        self._repository.stop_loading()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        await asyncio.to_thread(self._repository.wait_for_sequences, timeout_s * _FOR_SEQUENCES)
        try:
            async with asyncio.timeout(max(deadline - loop.time(), 0)):
                await asyncio.gather(*(frontend.drain() for frontend in self._started))
        except TimeoutError:
            log.warning("some connections were still busy after %.1f s", timeout_s)
        await asyncio.to_thread(self._polling.stop)
        return await asyncio.to_thread(self._repository.stop, max(deadline - loop.time(), 0))

    def _log_in_flight(self, timeout_s: float) -> None:
        """Log what Triton logs when it begins to stop; tools look for these lines."""
        found = self._repository.in_flight()
        log.info("Waiting for in-flight requests to complete.")
        log.info("Timeout %d: Found %d model versions that have in-flight inferences", timeout_s + _SPENT_S, len(found))
        for name, version, count in found:
            log.info("Model '%s' (version %d) has %d in-flight inferences", name, version, count)

    async def stop(self) -> None:
        """Close every port and free everything; safe after a failed `start`."""
        self._local.state = ServerState.EXITING
        self._rings.detach()
        await asyncio.to_thread(self._polling.stop)
        if self._single_port is not None:
            await self._single_port.close()
        await asyncio.gather(*(self._stop(frontend) for frontend in self._started))
        await asyncio.to_thread(self._repository.stop, 0)
        self._gpus.pools.close()
        await asyncio.to_thread(self._timer.stop)
        for threads in self._threads:
            await asyncio.to_thread(threads.close)
        await asyncio.to_thread(self._repository.close)
        await asyncio.to_thread(self._front.close)
        await asyncio.to_thread(self._local.close)
        if self._cache is not None:
            await asyncio.to_thread(self._cache.close)
        for observer in self._observers:
            observer.close()
        if self._gatekeeper is not None:
            await asyncio.to_thread(self._gatekeeper.close)
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
            return failures  # why it ends is told elsewhere: what had not loaded by then is not worth a table
        if index:
            log.info("models:", extra={"table": table_of(index, terminal_columns()), "models": models_of(index)})
        else:
            urls = ", ".join(without_secrets(repository.url) for repository in self.config.repositories)
            log.warning(
                "no models in %s: a model is a folder with a version folder in it, such as digits/1/model.onnx", urls
            )
        return failures


def build(config: ServerConfig, plugins: PluginManager | None = None, limiter: RateLimiter | None = None) -> Server:
    """Return a server made of what `config` names; nothing runs yet.

    Raises StartupError (PluginError, InvalidServerConfig) for a plugin that is missing and for options that are wrong, all of
    one plugin's at once.
    """
    plugins = plugins or make_plugin_manager(disable=config.plugins.disable)
    table = NamespacedTable() if config.model_namespacing else ModelTable()
    timer, rings, metrics = Timer(), Rings(), CustomMetrics()
    graph = CallGraph(table.config)
    tracing = make_tracing(config.trace, plugins)
    engine = _engine(config, plugins, table, metrics, graph, tracing)
    observers = make_observers(config, plugins)
    backends = Backends(plugins, config.backends, config.backend_defaults, BackendFolders(config.backend_directory))
    backends.check_options()
    cache = make_cache(config, plugins, timer, metrics)
    sharing = make_sharing(config, plugins, metrics)
    if sharing is not None:
        engine.share(sharing)
    gpus = Gpus.of_machine(config.devices)
    metrics.add_source(gpus.pools.metrics)
    surroundings = Surroundings(
        plugins=plugins,
        backends=backends,
        engine=engine,
        timer=timer,
        rings=rings,
        limiter=limiter or make_limiter(config),
        neighbours=Neighbours(table.config, graph),
        metrics=metrics,
        observers=observers,
        agents=make_agents(config, plugins),
        required_agents=config.required_repo_agents,
        gpus=gpus,
        auto_complete=not config.disable_auto_complete,
        config_name=config.model_config_name,
        latencies=config.latencies,
        cache=cache,
        line=None if sharing is None else sharing.line,
        host_policies=HostPolicies(config.host_policies),
    )
    fleet = _fleet(config, tracing, metrics)
    repository = _repository(config, plugins, table, surroundings, fleet)
    engine.attach(repository)
    _offer_memory(config, engine, repository)
    gatekeeper = make_gatekeeper(config, plugins, metrics)
    kept_headers = frozenset[str]() if sharing is None else sharing.headers()
    front = make_front(engine, config, plugins, metrics)
    memory = request_memory(config.request_memory)
    if fleet is None:  # otherwise each process tells of its own
        metrics.add_source(memory.metrics)
    single_port = _single_port(config)
    frontends = make_frontends(
        config, plugins, gatekeeper, tracing, kept_headers | front.headers, metrics, memory, single_port
    )
    frontends = _served_elsewhere(frontends, fleet)
    pools = (surroundings.threads, surroundings.background)
    made = observers, timer, rings, gatekeeper, cache, gpus, front, pools, single_port
    return Server(config, plugins, engine, repository, frontends, *made)


def _engine(
    config: ServerConfig,
    plugins: PluginManager,
    table: ModelTable,
    metrics: CustomMetrics,
    graph: CallGraph,
    tracing: Tracing,
) -> LocalEngine:
    sequences = "sequence" in plugins.table("tritonpy_schedulers")
    extensions = [name for name in EXTENSIONS if sequences or name != "sequence"]
    metadata = ServerMetadata(config.id, SERVER_VERSION, extensions)
    explicit, regions = config.control.mode == "explicit", Regions(config.allow_client_shm)
    return LocalEngine(table, metrics, graph, metadata, explicit, config.strict_readiness, regions, tracing)


def _repository(
    config: ServerConfig, plugins: PluginManager, table: ModelTable, surroundings: Surroundings, fleet: Fleet | None
) -> RepositoryManager:
    return RepositoryManager(
        open_repositories(config, plugins),
        table,
        ModelLoader(surroundings),
        _events(plugins, fleet),
        config.control.threads,
        config.control.retries,
        config.model_namespacing,
        config.memory,
        config.control.load_timeout_s,
    )


def _fleet(config: ServerConfig, tracing: Tracing, metrics: CustomMetrics) -> Fleet | None:
    if not config.frontend_processes:
        return None
    from tritonpy.frontend_processes.fleet import Fleet

    return Fleet(config, tracing, metrics)


def _single_port(config: ServerConfig) -> SinglePort | None:
    if config.single_port is None:
        return None
    from tritonpy.listening.single_port import SinglePort

    return SinglePort(config.host, config.single_port)


def _served_elsewhere(frontends: dict[str, Frontend], fleet: Fleet | None) -> dict[str, Frontend]:
    if fleet is None:
        return frontends
    from tritonpy.frontend_processes.elsewhere import served_elsewhere

    return served_elsewhere(frontends, fleet)


def _offer_memory(config: ServerConfig, engine: LocalEngine, repository: RepositoryManager) -> None:
    if config.memory != MemorySettings():
        from tritonpy.repository.budget.operation import memory_operation

        engine.offer(memory_operation(repository.memory))


def _events(plugins: PluginManager, fleet: Fleet | None) -> ModelEvents:
    def loaded(model: LoadedModel) -> None:
        if fleet is not None:
            fleet.models_changed()
        _tell(plugins.hook.tritonpy_model_loaded, name=model.name, version=model.version, config=model.config)

    def unloaded(model: LoadedModel) -> None:
        if fleet is not None:
            fleet.models_changed()
        _tell(plugins.hook.tritonpy_model_unloaded, name=model.name, version=model.version, config=model.config)

    return ModelEvents(loaded, unloaded)


def _tell(hook: Any, **event: Any) -> None:
    """Fire an event hook; a plugin that raises is logged, it cannot stop what happened."""
    try:
        hook(**event)
    except Exception:
        log.exception("a plugin failed in the hook %s", hook.name)
