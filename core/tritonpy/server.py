"""Puts a server together from its configuration, and runs it from start to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy.api.engine import ServerMetadata
from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.sharing import Sharing
from tritonpy.api.version import SERVER_VERSION
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.local import EXTENSIONS, LocalEngine
from tritonpy.errors import StartupError, TritonError
from tritonpy.interpreter import prepare_interpreter, release_interpreter, settle_interpreter
from tritonpy.model.loaded import LoadedModel
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.python_based import BackendFolders
from tritonpy.repository.gpus import Gpus
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.manager import ModelEvents, RepositoryManager
from tritonpy.repository.namespaces import NamespacedTable
from tritonpy.repository.opening import open_repositories
from tritonpy.repository.polling import Polling
from tritonpy.repository.report import table_of
from tritonpy.repository.surroundings import Surroundings
from tritonpy.repository.table import ModelTable
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.rings import Rings
from tritonpy.runners.timer import Timer
from tritonpy.runners.workers.neighbours import Neighbours
from tritonpy.shared_memory import Regions
from tritonpy.shown_urls import without_secrets
from tritonpy.tracing.setup import make_tracing
from tritonpy.tracing.tracing import Tracing

if TYPE_CHECKING:
    from tritonpy.access.gatekeeper import Gatekeeper

log = logging.getLogger("tritonpy.server")

_FOR_SEQUENCES = 0.8  # of the exit timeout: a sequence may never end, and requests need time too


class Server:
    """A server that is put together and not started. It installs no signal handler and creates no event loop.

    `start`, `drain` and `stop` are called in this order on one event loop, which belongs to the host: the command line, or an
    embedding transport. `failures` names, after `start`, the models that did not load and why.
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
    ) -> None:
        self.config = config
        self.plugins = plugins
        self.engine = engine
        self.frontends = frontends
        self.failures: dict[str, TritonError] = {}
        self._repository = repository
        self._observers = observers
        self._timer = timer
        self._rings = rings
        self._gatekeeper = gatekeeper
        self._cache = cache
        self._gpus = gpus or Gpus()
        self._polling = Polling(repository.poll, config.control.interval_s)
        self._started: list[Frontend] = []

    async def start(self) -> None:
        """Listen, load the models, and become ready.

        The ports are taken first, so that a taken one is found at once; until the models are loaded the server answers health requests and
        refuses others as not ready. Raises StartupError for a taken port, an unreadable repository, or (unless `exit_on_error` is false) a model that
        failed to load; then call `stop`.
        """
        prepare_interpreter()
        loop = asyncio.get_running_loop()
        self._rings.attach(loop)
        loading = loop.run_in_executor(None, self._load_models)
        try:
            await self._listen()
        except BaseException:
            self._repository.stop_loading()
            raise
        finally:
            self.failures = await loading
        if self.failures and self.config.exit_on_error:
            raise StartupError(
                f"failed to load all models: {', '.join(sorted(self.failures))}. Repair or remove them, "
                "or serve what does load with --exit-on-error=false."
            )
        settle_interpreter()
        self.engine.state = ServerState.READY
        for frontend in self._started:
            await frontend.serving()
        if self.config.control.mode == "poll":
            await asyncio.to_thread(self._repository.watch, self._polling.wake)
            self._polling.start()
        _tell(self.plugins.hook.tritonpy_server_started, engine=self.engine)

    async def _listen(self) -> None:
        if self._gatekeeper is not None:
            await asyncio.to_thread(self._gatekeeper.start)
        for name, frontend in self.frontends.items():
            await frontend.start(self.engine)
            self._started.append(frontend)
            log.info("%s listens on %s", name, frontend.address())

    async def drain(self, timeout_s: float | None = None) -> bool:
        """Refuse new requests and wait until the live ones are answered; False when `timeout_s` passed before.

        Where sequences live, their requests are taken until they end, for most of that time.
        """
        _tell(self.plugins.hook.tritonpy_server_stopping, engine=self.engine)
        self.engine.state = ServerState.EXITING
        self._polling.finish()
        self._repository.stop_loading()
        timeout_s = self.config.exit_timeout_s if timeout_s is None else timeout_s
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

    async def stop(self) -> None:
        """Close every port and free everything; safe after a failed `start`."""
        self.engine.state = ServerState.EXITING
        self._rings.detach()
        await asyncio.to_thread(self._polling.stop)
        await asyncio.gather(*(self._stop(frontend) for frontend in self._started))
        await asyncio.to_thread(self._repository.stop, 0)
        self._gpus.pools.close()
        await asyncio.to_thread(self._timer.stop)
        await asyncio.to_thread(self._repository.close)
        await asyncio.to_thread(self.engine.close)
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
            raise StartupError(error.message) from error
        if index:
            log.info("models:", extra={"table": table_of(index)})
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
    control = config.control
    metadata = ServerMetadata(config.id, SERVER_VERSION, EXTENSIONS)
    graph = CallGraph(table.config)
    shared_memory = Regions(config.allow_client_shm)
    tracing = make_tracing(config.trace, plugins)
    explicit = control.mode == "explicit"
    engine = LocalEngine(table, metrics, graph, metadata, explicit, config.strict_readiness, shared_memory, tracing)
    observers = _observers(config, plugins)
    backends = Backends(plugins, config.backends, config.backend_defaults, BackendFolders(config.backend_directory))
    backends.check_options()
    cache = _cache(config, plugins, timer, metrics)
    sharing = _sharing(config, plugins, metrics)
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
        limiter=limiter or _limiter(config),
        neighbours=Neighbours(table.config, graph),
        metrics=metrics,
        observers=observers,
        agents=_agents(config, plugins),
        required_agents=config.required_repo_agents,
        gpus=gpus,
        auto_complete=not config.disable_auto_complete,
        config_name=config.model_config_name,
        latencies=config.latencies,
        cache=cache,
        line=None if sharing is None else sharing.line,
        host_policies=HostPolicies(config.host_policies),
    )
    repository = RepositoryManager(
        open_repositories(config, plugins),
        table,
        ModelLoader(surroundings),
        _events(plugins),
        control.threads,
        control.retries,
        config.model_namespacing,
    )
    engine.attach(repository)
    gatekeeper = _gatekeeper(config, plugins, metrics)
    kept_headers = frozenset[str]() if sharing is None else sharing.headers()
    frontends = _frontends(config, plugins, gatekeeper, tracing, kept_headers, metrics)
    return Server(config, plugins, engine, repository, frontends, observers, timer, rings, gatekeeper, cache, gpus)


def _events(plugins: PluginManager) -> ModelEvents:
    def loaded(model: LoadedModel) -> None:
        _tell(plugins.hook.tritonpy_model_loaded, name=model.name, version=model.version, config=model.config)

    def unloaded(model: LoadedModel) -> None:
        _tell(plugins.hook.tritonpy_model_unloaded, name=model.name, version=model.version, config=model.config)

    return ModelEvents(loaded, unloaded)


def _tell(hook: Any, **event: Any) -> None:
    """Fire an event hook; a plugin that raises is logged, it cannot stop what happened."""
    try:
        hook(**event)
    except Exception:
        log.exception("a plugin failed in the hook %s", hook.name)


def _gatekeeper(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Gatekeeper | None:
    if not config.auth:
        return None
    from tritonpy.access.composing import make_gatekeeper

    return make_gatekeeper(config, plugins, metrics)


def _frontends(
    config: ServerConfig,
    plugins: PluginManager,
    gatekeeper: Gatekeeper | None,
    tracer: Tracing,
    kept_headers: frozenset[str],
    metrics: CustomMetrics,
) -> dict[str, Frontend]:
    frontends: dict[str, Frontend] = {}
    for name, raw in config.enabled_frontends(plugins.table("tritonpy_frontends")).items():
        kind = plugins.get("tritonpy_frontends", name, "frontend").load()
        options = decode_options(kind.Options, raw, f"frontends.{name}")
        own = logging.getLogger(f"tritonpy.{name}")
        context = FrontendContext(config.host, own, gatekeeper, tracer, kept_headers, ModelMetrics(metrics))
        frontends[name] = kind(options, context)
    return frontends


def _observers(config: ServerConfig, plugins: PluginManager) -> list[Observer]:
    observers: list[Observer] = []
    for name, raw in config.observers.items():
        kind = plugins.get("tritonpy_observers", name, "observer").load()
        observers.append(kind(decode_options(kind.Options, raw, f"observers.{name}")))
    return observers


def _cache(config: ServerConfig, plugins: PluginManager, timer: Timer, metrics: CustomMetrics) -> ResponseCache | None:
    for name, raw in config.cache.items():  # one at most: the configuration was checked
        kind = plugins.get("tritonpy_caches", name, "response cache").load()
        cache = ResponseCache(kind(decode_options(kind.Options, raw, f"cache.{name}")), name, timer)
        metrics.add_source(cache.metrics)
        return cache
    return None


def _sharing(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Sharing | None:
    for name, raw in config.sharing.items():  # one at most: the configuration was checked
        kind = plugins.get("tritonpy_sharings", name, "way of sharing").load()
        sharing: Sharing = kind(decode_options(kind.Options, raw, f"sharing.{name}"), ModelMetrics(metrics))
        return sharing
    return None


def _limiter(config: ServerConfig) -> RateLimiter:
    if config.rate_limit.mode == "off":
        if config.rate_limit.resources:
            log.warning("rate_limit.resources has no effect: rate_limit.mode is off")
        return NoRateLimiter()
    from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter

    return ExecutionCountLimiter(config.rate_limit.resources)


def _agents(config: ServerConfig, plugins: PluginManager) -> Callable[[str], RepoAgent]:
    """Return what makes agents by name; raise for a required one that cannot be made: without it no model would load."""
    for name in config.required_repo_agents:
        _agent(config, plugins, name)
    return lambda name: _agent(config, plugins, name)


def _agent(config: ServerConfig, plugins: PluginManager, name: str) -> RepoAgent:
    kind: Any = plugins.get("tritonpy_repo_agents", name, "repository agent").load()
    agent: RepoAgent = kind(decode_options(kind.Options, config.repo_agents.get(name, {}), f"repo_agents.{name}"))
    return agent
