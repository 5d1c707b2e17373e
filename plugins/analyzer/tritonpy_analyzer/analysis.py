"""The Python API: `analyze(AnalysisOptions(...))` measures, searches, and returns a `Study`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from tritonpy import StartupError
from tritonpy.plugins import make_plugin_manager
from tritonpy_analyzer.findings import SearchOptions, SearchView
from tritonpy_analyzer.goals import Constraint, Goals, Metric, Objective, parse_goals, parse_size
from tritonpy_analyzer.measuring import ServerMeasurer, Traffic
from tritonpy_analyzer.output_check import OutputCheck
from tritonpy_analyzer.search import Search
from tritonpy_analyzer.servers import InvalidCandidate, OwnServer, OwnServerOptions, ServerSlot
from tritonpy_analyzer.space import Limits, Space, make_space
from tritonpy_analyzer.study import (
    STUDY_FILE,
    Journal,
    RecordingMeasurer,
    Study,
    fingerprint,
    machine_text,
    write_study,
)
from tritonpy_analyzer.study_summary import make_study
from tritonpy_checks.machine import this_machine
from tritonpy_config.tuning import SearchDimension
from tritonpy_load_generator.client.pool import ClientPool
from tritonpy_load_generator.interruption import interruption
from tritonpy_load_generator.options import BadUsage, LoadLevel, LoadOptions
from tritonpy_load_generator.target.control import RequestRejected
from tritonpy_load_generator.target.description import describe
from tritonpy_load_generator.target.metadata import TargetDescription

Scenario = Literal["", "single-stream", "multi-stream", "server", "offline"]
_MULTI_STREAM = 8
_LISTEN_S = 1.0
_CALLS_S = 0.5
_OWN_SERVERS = 3


class AnalysisOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What to analyze. Give `repository` or `server_yaml` for an own server, or `url`.

    `models` get the requests, in the ratio of `mix` if there are several. `slo` are constraints
    such as `p99<20ms`. `minutes` is the time that the analysis takes. `folder` keeps everything
    that is measured. `rate` and `concurrency` fix the load instead of searching the highest rate.
    `allow_precision` searches lower precisions whose outputs differ by at most this share.
    """

    models: tuple[str, ...]
    repository: str = ""
    server_yaml: str = ""
    url: str = ""
    protocol: Literal["http", "grpc"] = "http"
    slo: tuple[str, ...] = ()
    maximize: tuple[str, ...] = ()
    minimize: tuple[str, ...] = ()
    memory: str = ""
    minutes: float = 5.0
    seed: int = 1
    scenario: Scenario = ""
    rate: float = 0.0
    concurrency: int = 0
    mix: dict[str, float] = {}
    max_batch_size: int = 128
    max_instances: int = 8
    max_trials: int = 0
    composing_models: tuple[str, ...] = ()
    server_flags: tuple[str, ...] = ()
    folder: str = ""
    resume: bool = False
    allow_precision: float = 0.0
    yes_disturb: bool = False
    ignore_load: bool = False
    command: str = ""
    client_processes: int = 1
    input_data: tuple[str, ...] = ("random",)
    shape: tuple[tuple[str, tuple[int, ...]], ...] = ()
    streaming: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class _QuietView:
    def phase(self, text: str) -> None:
        pass

    def progress(self, elapsed_s: float, best: str) -> None:
        pass

    def verdict(self, text: str) -> None:
        pass


def analyze(options: AnalysisOptions, view: SearchView | None = None) -> Study:
    """Measure and search until the time is over, and return the result.

    Ctrl-C ends the search and keeps what it has found; a second one ends the process. Raises
    BadUsage for options that contradict each other, and StartupError if the server cannot be
    started or reached.
    """
    goals, level = check_options(options)
    return asyncio.run(_analyze(options, goals, level, view or _QuietView()))


def check_options(options: AnalysisOptions) -> tuple[Goals, LoadLevel | None]:
    """Return the goals and the fixed load, or None if the highest rate is searched.

    Raises BadUsage.
    """
    goals = parse_goals(options.slo, options.maximize, options.minimize)
    if options.memory:
        size = parse_size(options.memory)
        more = (Constraint(each, True, size) for each in (Metric.MEMORY_CPU, Metric.MEMORY_GPU))
        goals = msgspec.structs.replace(goals, constraints=(*goals.constraints, *more))
    problems = [
        (not options.models, "no model was given: tritonpy analyze MODEL"),
        (options.minutes <= 0, "--minutes must be greater than 0"),
        (bool(options.rate and options.concurrency), "--rate and --concurrency exclude each other"),
        (
            bool(options.scenario and (options.rate or options.concurrency)),
            "--scenario selects the load: remove --rate and --concurrency",
        ),
        (
            options.scenario == "server" and not goals.latency_limits,
            "--scenario server needs a latency limit: add --slo 'p99<20ms'",
        ),
        (
            sum(map(bool, (options.repository, options.server_yaml, options.url))) > 1,
            "give one of --model-repository, --config and -u",
        ),
        (
            bool(set(options.mix) - set(options.models)),
            f"--mix names a model that is not analyzed: {', '.join(options.mix)}",
        ),
        (any(weight <= 0 for weight in options.mix.values()), "weights of --mix must be above 0"),
        (
            bool(options.allow_precision) and options.protocol != "http",
            "--allow-precision compares outputs over HTTP: use -i http",
        ),
        (options.max_instances < 1, "--max-instances must be at least 1"),
        (options.max_batch_size < 1, "--max-batch-size must be at least 1"),
    ]
    for wrong, text in problems:
        if wrong:
            raise BadUsage(text)
    match options.scenario:
        case "single-stream":
            return _with_objective(goals, options, Metric.P90), LoadLevel(1)
        case "multi-stream":
            return _with_objective(goals, options, Metric.P99), LoadLevel(1)
    if options.rate:
        return goals, LoadLevel(options.rate, "poisson")
    if options.concurrency:
        return goals, LoadLevel(float(options.concurrency))
    return goals, None


def _with_objective(goals: Goals, options: AnalysisOptions, metric: Metric) -> Goals:
    if options.maximize or options.minimize:
        return goals
    return msgspec.structs.replace(goals, objectives=(Objective(metric, False),))


async def _analyze(
    options: AnalysisOptions, goals: Goals, level: LoadLevel | None, view: SearchView
) -> Study:
    folder = Path(options.folder or f"tritonpy_analysis/{'_'.join(options.models)}")
    journal = Journal(folder)
    with interruption() as interrupted:
        async with _slots(options, folder, view) as slots:
            targets, configs = await asyncio.to_thread(_describe, options, slots[0])
            if any(config.get("backend") == "python" for config in configs.values()):
                view.phase("finding the models that the model calls")
                for name in await called_models(options, slots, targets[0], configs):
                    configs[name] = await asyncio.to_thread(slots[0].control.config, name, "")
            offered = offered_dimensions(configs, options.allow_precision > 0)
            space = make_space(
                configs,
                offered,
                Limits(options.max_batch_size, options.max_instances),
            )
            if not space.dimensions:
                raise BadUsage(
                    f"there is nothing to search for {', '.join(configs)}: the model neither "
                    "batches nor has one instance group"
                )
            if options.url:
                if options.resume:
                    await asyncio.to_thread(_restore_abandoned, folder, slots[0])
                await asyncio.to_thread(_check_load_rights, slots[0], space)
            identity = fingerprint(
                {
                    "options": _identity(options),
                    "configurations": configs,
                    "machine": machine_text() if not options.url else "",
                    "server": [targets[0].server.name, targets[0].server.version],
                },
                _model_folder(options),
            )
            notes = []
            reason = journal.begin(identity, configs, options.resume)
            if reason:
                notes.append(f"a new study was started: {reason}")
            try:
                search = await _search(
                    options,
                    goals,
                    level,
                    view,
                    interrupted,
                    slots,
                    targets,
                    space,
                    journal,
                    offered,
                )
            finally:
                errors = [error for slot in slots for error in _restored(slot, configs, options)]
            notes += errors
            study = make_study(search, options, goals, targets[0], notes, interrupted.is_set())
    study.folder = str(folder)
    write_study(folder / "result.json", study)
    return study


def _identity(options: AnalysisOptions) -> dict[str, Any]:
    left_out = {"folder", "resume", "command", "minutes", "yes_disturb"}
    plain: dict[str, Any] = msgspec.to_builtins(options)
    return {name: value for name, value in plain.items() if name not in left_out}


def _model_folder(options: AnalysisOptions) -> Path | None:
    folder = Path(options.repository) / options.models[0] if options.repository else None
    return folder if folder is not None and folder.is_dir() else None


def _restored(
    slot: ServerSlot, configs: Mapping[str, Mapping[str, Any]], options: AnalysisOptions
) -> list[str]:
    if not options.url:
        return []
    return [f"not restored: {error}" for error in slot.restore(configs)]


def _check_load_rights(slot: ServerSlot, space: Space) -> None:
    """Raise BadUsage if the live server does not let us load models."""
    model = space.models[0]
    try:
        slot.control.load(model, space.configs[model])
    except RequestRejected as error:
        raise BadUsage(
            f"the server does not load '{model}' with another configuration: {error}; "
            "start it with --model-control-mode=explicit"
        ) from error
    slot.changed.add(model)


def _restore_abandoned(folder: Path, slot: ServerSlot) -> None:
    """Restore what an analysis that was killed left on a live server."""
    try:
        original = json.loads((folder / STUDY_FILE).read_text(encoding="utf-8"))["original"]
    except (OSError, ValueError, KeyError):
        return
    slot.changed.update(original)
    slot.restore(original)


async def _search(
    options: AnalysisOptions,
    goals: Goals,
    level: LoadLevel | None,
    view: SearchView,
    interrupted: asyncio.Event,
    slots: Sequence[ServerSlot],
    targets: Sequence[TargetDescription],
    space: Space,
    journal: Journal,
    offered: Mapping[str, Sequence[SearchDimension]],
) -> Search:
    traffic = [
        Traffic(model, options.mix.get(model, 1.0) if options.mix else 1.0)
        for model in options.models
    ]
    async with AsyncExitStack() as stack:
        pools = [
            (slot, await _open_pools(stack, slot, targets, options.scenario)) for slot in slots
        ]
        limits = [each.limit for each in goals.latency_limits]
        measurer = ServerMeasurer(
            pools,
            space,
            traffic,
            list(space.configs),
            max(limits, default=None),
            output_check=await asyncio.to_thread(
                _output_check, options, slots[0], space, targets, offered
            ),
            ignore_load=options.ignore_load,
        )
        if options.url and not options.yes_disturb:
            foreign = await measurer.foreign_requests(_LISTEN_S)
            if foreign:
                raise BadUsage(
                    f"others sent {foreign} inferences within {_LISTEN_S:.0f} s: the analysis "
                    "would disturb them; add --yes-disturb to run it anyway"
                )
        recording = RecordingMeasurer(measurer, journal)
        search = Search(
            space,
            goals,
            recording,
            SearchOptions(
                seconds=options.minutes * 60,
                seed=options.seed,
                level=level,
                max_trials=options.max_trials,
                cores=this_machine().cores or 1,
            ),
            view,
            interrupted,
        )
        await search.run()
        return search


def _output_check(
    options: AnalysisOptions,
    slot: ServerSlot,
    space: Space,
    targets: Sequence[TargetDescription],
    offered: Mapping[str, Sequence[SearchDimension]],
) -> OutputCheck | None:
    """Return the check of outputs; None if no searched setting changes them.

    Raises BadUsage if the present configuration does not respond to generated inputs.
    """
    settings = frozenset(
        (model, each.name)
        for model, found in offered.items()
        for each in found
        if each.changes_output
    )
    if not settings:
        return None
    bound = options.allow_precision
    try:
        return OutputCheck(slot, targets[0].model, settings, space.present, bound)
    except InvalidCandidate as error:
        raise BadUsage(f"--allow-precision: {error}") from error


async def _open_pools(
    stack: AsyncExitStack,
    slot: ServerSlot,
    targets: Sequence[TargetDescription],
    scenario: Scenario,
) -> dict[str, ClientPool]:
    """Start the client processes of one server, a pool for each model that gets requests."""
    batch = _MULTI_STREAM if scenario == "multi-stream" else 1
    pools = {}
    for target in targets:
        load = msgspec.structs.replace(slot.options, model=target.model.name, batch=batch)
        pools[target.model.name] = await stack.enter_async_context(ClientPool(target, load))
    return pools


@asynccontextmanager
async def _slots(
    options: AnalysisOptions, folder: Path, view: SearchView
) -> AsyncIterator[list[ServerSlot]]:
    """Start own servers, or connect to the live one."""
    load = LoadOptions(
        model=options.models[0],
        protocol=options.protocol,
        client_processes=options.client_processes,
        input_data=options.input_data,
        shape=options.shape,
        streaming=options.streaming,
        headers=options.headers,
        seed=options.seed,
    )
    if options.url:
        slot = ServerSlot(msgspec.structs.replace(load, url=options.url))
        try:
            yield [slot]
        finally:
            slot.close()
        return
    own = OwnServerOptions(
        Path(options.repository or "models"),
        Path(options.server_yaml) if options.server_yaml else None,
        options.server_flags,
    )
    view.phase("starting servers")
    models = [*options.models, *options.composing_models]
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(OwnServer(own, models, folder / f"server_{number}.log"))
            for number in range(_OWN_SERVERS)
        ]
        for server in servers:
            await server.wait_until_ready()
        slots = [
            ServerSlot(msgspec.structs.replace(load, url=server.urls[options.protocol]), server.pid)
            for server in servers
        ]
        for slot in slots:
            stack.callback(slot.close)
        yield slots


def _describe(
    options: AnalysisOptions, slot: ServerSlot
) -> tuple[list[TargetDescription], dict[str, Mapping[str, Any]]]:
    """Return the models that get requests, and the configurations of all searched models."""
    targets = [describe(slot.control, model, "") for model in options.models]
    for target in targets:
        if target.model.decoupled and not options.streaming:
            raise BadUsage(f"model '{target.model.name}' is decoupled: use -i grpc --streaming")
    names = dict.fromkeys(
        name
        for target in targets
        for name in (target.model.name, *target.model.members, *options.composing_models)
    )
    configs: dict[str, Mapping[str, Any]] = {}
    for name in names:
        try:
            configs[name] = slot.control.config(name, "")
        except RequestRejected as error:
            raise StartupError(f"the configuration of '{name}' cannot be read: {error}") from error
    return targets, configs


async def called_models(
    options: AnalysisOptions,
    slots: Sequence[ServerSlot],
    target: TargetDescription,
    known: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Return the models that run when the target gets requests, without the known ones.

    Own servers load a model that the target's error text names.
    """
    folder = Path(options.repository) if options.repository else None
    names = sorted(each.name for each in folder.iterdir()) if folder is not None else []
    load = msgspec.structs.replace(slots[0].options, model=target.model.name)
    loaded = set(known)
    async with ClientPool(target, load) as pool:
        while True:
            before = await asyncio.to_thread(slots[0].control.statistics, "", "")
            await pool.start(LoadLevel(1))
            await asyncio.sleep(_CALLS_S)
            snapshot = await pool.take_snapshot()
            await pool.stop(grace_s=1)
            after = await asyncio.to_thread(slots[0].control.statistics, "", "")
            missing = [
                name
                for name in names
                if name not in loaded and any(f"'{name}'" in text for text in snapshot.errors)
            ]
            if not missing:
                return sorted(_active(before, after) - set(known))
            for slot in slots:
                await asyncio.to_thread(slot.control.load, missing[0])
            loaded.add(missing[0])


def _active(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the models that ran between two readings of the statistics of all models."""
    earlier = {
        (each["name"], each["version"]): int(each.get("inference_count", 0)) for each in before
    }
    return {
        str(each["name"])
        for each in after
        if int(each.get("inference_count", 0)) > earlier.get((each["name"], each["version"]), 0)
    }


def offered_dimensions(
    configs: Mapping[str, Mapping[str, Any]], changes_output: bool
) -> dict[str, Sequence[SearchDimension]]:
    """Return what the backends of these models offer to search, if they are installed here.

    Settings that change outputs are part of it only with `changes_output`.
    """
    table = make_plugin_manager().table("tritonpy_backends")
    cores = this_machine().cores or 1
    found: dict[str, Sequence[SearchDimension]] = {}
    for name, config in configs.items():
        backend = str(config.get("backend", ""))
        if backend not in table:
            continue
        try:
            kind = table[backend].load()
        except StartupError:
            continue
        found[name] = [
            each
            for each in kind.search_dimensions(cores)
            if changes_output or not each.changes_output
        ]
    return found
