"""The Python API: `analyze(AnalysisOptions(...))` measures, searches, and returns a `Study`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from tritonpy import StartupError
from tritonpy.plugins import make_plugin_manager
from tritonpy_analyzer.goals import Constraint, Goals, Metric, Objective, parse_goals, parse_size
from tritonpy_analyzer.measuring import ServerMeasurer, Traffic, Window
from tritonpy_analyzer.racing import Comparison
from tritonpy_analyzer.search import Search, SearchOptions, SearchView
from tritonpy_analyzer.servers import OwnServer, OwnServerOptions, ServerSlot
from tritonpy_analyzer.space import INSTANCES, Candidate, Limits, Space, make_space
from tritonpy_analyzer.study import (
    STUDY_FILE,
    CandidateResult,
    CurvePoint,
    DroppedWindows,
    Interval,
    Journal,
    RecordingMeasurer,
    Study,
    fingerprint,
    machine_text,
    percentile_interval,
    write_study,
)
from tritonpy_checks.machine import this_machine
from tritonpy_checks.tuning import SearchDimension
from tritonpy_load_generator.client.pool import ClientPool
from tritonpy_load_generator.figures.histogram import merge
from tritonpy_load_generator.options import BadUsage, LoadLevel, LoadOptions
from tritonpy_load_generator.target.control import RequestRejected
from tritonpy_load_generator.target.description import describe
from tritonpy_load_generator.target.metadata import TargetDescription

Scenario = Literal["", "single-stream", "multi-stream", "server", "offline"]
_MULTI_STREAM = 8
_LISTEN_S = 1.0
_OWN_SERVERS = 3
_NEAR_RATE = 0.08
_PERCENTILES = (Metric.P50, Metric.P90, Metric.P95, Metric.P99, Metric.P999)


class AnalysisOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What to analyze. Give `repository` or `server_yaml` for an own server, or `url`.

    `models` get the requests, in the ratio of `mix` if there are several. `slo` are constraints
    such as `p99<20ms`. `minutes` is the time that the analysis takes. `folder` keeps everything
    that is measured. `rate` and `concurrency` fix the load instead of searching the highest rate.
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
    yes_disturb: bool = False
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
    with _interruption() as interrupted:
        async with _slots(options, folder, view) as slots:
            targets, configs = await asyncio.to_thread(_describe, options, slots[0])
            space = make_space(
                configs,
                offered_dimensions(configs),
                Limits(options.max_batch_size, options.max_instances),
            )
            if not space.dimensions:
                raise BadUsage(
                    f"there is nothing to search for {', '.join(configs)}: the model neither "
                    "batches nor has one instance group"
                )
            if options.resume and options.url:
                _restore_abandoned(folder, slots[0])
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
                    options, goals, level, view, interrupted, slots, targets, space, journal
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
) -> Search:
    traffic = [
        Traffic(model, options.mix.get(model, 1.0) if options.mix else 1.0)
        for model in options.models
    ]
    batch = _MULTI_STREAM if options.scenario == "multi-stream" else 1
    async with AsyncExitStack() as stack:
        pools = [
            (
                slot,
                {
                    target.model.name: await stack.enter_async_context(
                        ClientPool(
                            target,
                            msgspec.structs.replace(
                                slot.options, model=target.model.name, batch=batch
                            ),
                        )
                    )
                    for target in targets
                },
            )
            for slot in slots
        ]
        limits = [each.limit for each in goals.latency_limits]
        measurer = ServerMeasurer(
            pools, space, traffic, list(space.configs), max(limits, default=None)
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


def offered_dimensions(
    configs: Mapping[str, Mapping[str, Any]],
) -> dict[str, Sequence[SearchDimension]]:
    """Return what the backends of these models offer to search, if they are installed here."""
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
        found[name] = kind.search_dimensions(cores)
    return found


@contextlib.contextmanager
def _interruption() -> Iterator[asyncio.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; the second ends the process."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        interrupted.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
            loop.add_signal_handler(number, interrupt)
    try:
        yield interrupted
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)


def make_study(
    search: Search,
    options: AnalysisOptions,
    goals: Goals,
    target: TargetDescription,
    notes: Sequence[str],
    interrupted: bool,
) -> Study:
    """Return the result of a search, whatever it has found so far."""
    found, space = search.findings, search.space
    present = space.present
    violated = search.violation()
    leader = found.leader or present
    known = dict.fromkeys([present, *found.merits, *found.out, *found.windows])
    results = {candidate: _result(search, candidate, goals) for candidate in known}
    for candidate in found.front:
        results[candidate].on_front = True
    gain = found.gain
    if found.too_noisy:
        status = "too_noisy"
    elif violated:
        status = "no_config"
    elif leader == present or (present not in found.out and not _is_better(gain)):
        status = "keep"
    else:
        status = "found"
    if gain is not None and leader != present:
        results[leader].gain = Interval.of(gain.ratio, gain.low, gain.high)
    results[present].status = "present"
    if status == "found" or (leader != present and status != "too_noisy"):
        results[leader].status = "recommended" if status == "found" else "closest"
    if found.verified is not None and found.verified[1] and leader in results:
        results[leader].checked_rate, windows = found.verified
        _note_latencies(results[leader], windows)
    ranked = sorted(results, key=lambda each: (-found.merits.get(each, -math.inf), each.key))
    return Study(
        status=status,
        models=list(options.models),
        constraints=[str(each) for each in goals.constraints],
        objectives=[str(each) for each in goals.objectives],
        load=search.load_text(),
        command=options.command,
        server=f"{target.server.name} {target.server.version}".strip(),
        machine=machine_text(),
        seconds=search.elapsed_s,
        minutes=options.minutes,
        seed=options.seed,
        interrupted=interrupted,
        recommended=results[leader] if status == "found" else None,
        present=results[present],
        candidates=[results[each] for each in ranked],
        limited_by=_limited_by(results[leader], found.windows.get(leader, [])),
        violated=violated,
        windows=found.count,
        dropped=DroppedWindows(
            len(found.dropped), dict(Counter(each.dropped for each in found.dropped))
        ),
        importance=_importance(found.merits),
        notes=[*notes, *_pruned_notes(found.pruned), *_thread_notes(leader)],
    )


def _is_better(gain: Comparison | None) -> bool:
    return gain is not None and gain.verdict == "better"


def _pruned_notes(pruned: Mapping[Candidate, str]) -> list[str]:
    return [
        f"{count} configurations were not measured: {reason}"
        for reason, count in Counter(pruned.values()).items()
    ]


def _thread_notes(candidate: Candidate) -> list[str]:
    """Return a note for each model whose instances together use more threads than cores."""
    cores = this_machine().cores or 1
    notes = []
    for model in dict.fromkeys(model for model, _, _ in candidate.settings):
        values = candidate.of(model)
        threads = [
            int(value)
            for name, value in values.items()
            if "thread" in name.lower() and isinstance(value, int)
        ]
        used = int(values.get(INSTANCES, 1)) * max(threads, default=1)
        if threads and used > cores:
            notes.append(f"'{model}' uses up to {used} threads on {cores} cores")
    return notes


def _result(search: Search, candidate: Candidate, goals: Goals) -> CandidateResult:
    found = search.findings
    windows = found.windows.get(candidate, [])
    rate = search.rate(candidate)
    result = CandidateResult(
        settings=list(candidate.settings),
        text=candidate.describe(),
        changes=search.space.changes(candidate),
        status="out" if candidate in found.out else "measured",
        reason=found.out.get(candidate, ""),
        windows=len(windows),
        rate=None if rate is None else Interval.of(*rate),
        predicted_rate=found.predicted.get(candidate),
        merits=list(found.front.get(candidate, (found.merits.get(candidate, 0.0),))),
        memory_cpu=max((each.memory_cpu for each in windows), default=0),
        memory_gpu=max((each.memory_gpu for each in windows), default=0),
    )
    if candidate in found.merits and candidate != search.space.present:
        ratio = math.exp(found.merits[candidate])
        result.gain = Interval(ratio, 0.0, None)
    _note_latencies(result, _near_rate(windows, None if rate is None else rate[0])[-8:])
    limits = goals.latency_limits
    percent = (limits[0].metric.percentile or 99.0) if limits else 99.0
    for window in sorted(found.curves.get(candidate, []), key=lambda each: each.level.value):
        latency = percentile_interval(window.latency, percent)
        result.curve.append(CurvePoint(window.level.value, latency, window.latency.total))
    return result


def _near_rate(windows: Sequence[Window], rate: float | None) -> list[Window]:
    """Return the windows of a candidate at about its own rate; those of its search are left out."""
    if rate is None or not any(each.level.open_loop for each in windows):
        return list(windows)
    return [each for each in windows if abs(math.log(each.level.value / rate)) < _NEAR_RATE]


def _note_latencies(result: CandidateResult, windows: Sequence[Window]) -> None:
    if not windows:
        return
    latency = merge(each.latency for each in windows)
    result.latencies = {
        metric.value: percentile_interval(latency, metric.percentile or 0.0)
        for metric in _PERCENTILES
    }
    result.requests = latency.total
    count = len(windows)
    result.queue_us = sum(each.queue_us for each in windows) / count
    result.compute_us = sum(each.compute_us for each in windows) / count
    batches: Counter[int] = Counter()
    shares: Counter[str] = Counter()
    for window in windows:
        batches.update(window.batches)
        shares.update(window.shares)
    result.batches = dict(sorted(batches.items()))
    total = sum(shares.values()) or 1.0
    result.shares = {name: value / total for name, value in shares.items()}


def _limited_by(result: CandidateResult, windows: Sequence[Window]) -> str:
    busy = max((each.client_busy for each in windows), default=0.0)
    if busy >= 0.95:
        return "the client: it used a whole core; add --client-processes"
    if not result.queue_us and not result.compute_us:
        return ""
    slowest = max(result.shares, key=lambda each: result.shares[each], default="")
    where = f" in '{slowest}'" if len(result.shares) > 1 else ""
    if result.queue_us > result.compute_us:
        return (
            f"the queue{where}: requests wait {result.queue_us / 1e3:.3g} ms, "
            f"executions take {result.compute_us / 1e3:.3g} ms"
        )
    return (
        f"compute{where}: executions take {result.compute_us / 1e3:.3g} ms, "
        f"requests wait {result.queue_us / 1e3:.3g} ms"
    )


def _importance(merits: Mapping[Candidate, float]) -> dict[str, float]:
    """Return the share of the variance of the merits that each setting explains by itself."""
    known = {each: value for each, value in merits.items() if math.isfinite(value)}
    if len(known) < 3:
        return {}
    mean = sum(known.values()) / len(known)
    total = sum((value - mean) ** 2 for value in known.values())
    found: dict[str, float] = {}
    for model, name, _ in next(iter(known)).settings:
        groups: dict[Any, list[float]] = {}
        for candidate, merit in known.items():
            groups.setdefault(candidate.of(model)[name], []).append(merit)
        between = sum(
            len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values()
        )
        found[f"{model}: {name}"] = between / total if total else 0.0
    return dict(sorted(found.items(), key=lambda item: -item[1]))
