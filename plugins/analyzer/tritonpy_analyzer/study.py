"""The result of an analysis, and the journal from which an interrupted one resumes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tritonpy import StartupError, __version__
from tritonpy_analyzer.measuring import LoadWindow, Measurer
from tritonpy_analyzer.space import Candidate
from tritonpy_load_generator.figures.histogram import LatencyHistogram
from tritonpy_load_generator.options import LoadLevel

FOUND, NO_CONFIG, TOO_NOISY = 0, 1, 3
STUDY_FILE, WINDOWS_FILE, RESULT_FILE = "study.json", "windows.jsonl", "result.json"


class Interval(msgspec.Struct, frozen=True):
    """An estimate with its 95 % interval; `high` is null if there is no upper bound."""

    value: float
    low: float
    high: float | None

    @classmethod
    def of(cls, value: float, low: float, high: float) -> Interval:
        """Return an interval; infinite bounds become null."""
        return cls(value, low, high if math.isfinite(high) else None)


class CurvePoint(msgspec.Struct, frozen=True):
    """A rate that was offered, and the latency limit's percentile there, in seconds."""

    rate: float
    latency: Interval
    requests: int


class CandidateResult(msgspec.Struct, kw_only=True):
    """A candidate and what was measured of it.

    Latencies are in seconds, memory in bytes. `rate` is the highest rate within the latency limits,
    or the throughput if there are none. `checked_rate` is a rate at which the limits held for a
    long time; `latencies` are then those of the check. `gain` is the ratio to the present
    configuration in the first objective.
    """

    settings: list[tuple[str, str, Any]]
    text: str
    changes: dict[str, dict[str, Any]]
    status: str
    reason: str = ""
    windows: int = 0
    rate: Interval | None = None
    checked_rate: float | None = None
    predicted_rate: float | None = None
    gain: Interval | None = None
    latencies: dict[str, Interval] = {}
    requests: int = 0
    merits: list[float] = []
    memory_cpu: int = 0
    memory_gpu: int = 0
    queue_us: float = 0.0
    compute_us: float = 0.0
    batches: dict[int, int] = {}
    shares: dict[str, float] = {}
    curve: list[CurvePoint] = []
    on_front: bool = False


class DroppedWindows(msgspec.Struct, frozen=True):
    """Windows that do not count, by reason."""

    count: int
    reasons: dict[str, int]


class Study(msgspec.Struct, kw_only=True):
    """The result of an analysis.

    `status` is `found`, `keep` if the present configuration is as good as any, `no_config` if none
    keeps the constraints, or `too_noisy`.
    """

    format: str = "tritonpy-analysis-1"
    tool: str = f"tritonpy {__version__}"
    status: str
    models: list[str]
    constraints: list[str]
    objectives: list[str]
    load: str
    command: str
    server: str
    machine: str
    seconds: float
    minutes: float
    seed: int
    interrupted: bool
    recommended: CandidateResult | None
    present: CandidateResult | None
    candidates: list[CandidateResult]
    limited_by: str
    violated: str
    windows: int
    dropped: DroppedWindows
    importance: dict[str, float] = {}
    notes: list[str] = []
    folder: str = ""

    @property
    def exit_status(self) -> int:
        """The exit status of the command."""
        return {"no_config": NO_CONFIG, "too_noisy": TOO_NOISY}.get(self.status, FOUND)

    @property
    def best(self) -> CandidateResult | None:
        """The configuration to use: the recommended one, or the present one if it is as good."""
        return self.recommended or self.present


def write_study(path: Path, study: Study) -> None:
    """Write a study as JSON. Raises StartupError."""
    with _explained(path.parent):
        path.write_bytes(msgspec.json.format(msgspec.json.encode(study), indent=1))


def read_study(path: Path) -> Study:
    """Read a study from a file or from the folder of an analysis. Raises StartupError."""
    file = path / RESULT_FILE if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=Study)
    except (OSError, msgspec.DecodeError) as error:
        raise StartupError(f"{file} is not the result of an analysis: {error}") from error


def machine_text() -> str:
    """Return the processor and the number of cores for a reader."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def fingerprint(parts: Mapping[str, Any], folder: Path | None) -> dict[str, str]:
    """Return what makes results comparable: a hash of each part, and of the model's files."""
    found = {name: _digest(json.dumps(value, sort_keys=True)) for name, value in parts.items()}
    if folder is not None:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                status = path.stat()
                found[f"file {path.relative_to(folder)}"] = _digest(
                    f"{status.st_size} {status.st_mtime_ns}"
                )
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The folder of an analysis: every window is written as soon as it is measured.

    Every method raises StartupError if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._decoder = msgspec.json.Decoder(LoadWindow)
        self._encoder = msgspec.json.Encoder()

    def begin(self, identity: Mapping[str, str], original: Mapping[str, Any], resume: bool) -> str:
        """Start a study, or continue the one in the folder if `resume` and nothing has changed.

        Return why an existing study is not continued, or "".
        """
        path = self.folder / STUDY_FILE
        reason = ""
        if resume:
            reason = self._difference(path, identity)
            if not reason:
                return ""
        content = json.dumps({"identity": identity, "original": original}, indent=1)
        with _explained(self.folder):
            path.write_text(content, encoding="utf-8")
            (self.folder / WINDOWS_FILE).write_bytes(b"")
        return reason

    def _difference(self, path: Path, identity: Mapping[str, str]) -> str:
        try:
            known = json.loads(path.read_text(encoding="utf-8"))["identity"]
        except (OSError, ValueError, KeyError):
            return f"there is no study in {self.folder}"
        changed = [
            name for name in sorted({*known, *identity}) if known.get(name) != identity.get(name)
        ]
        return f"changed since: {', '.join(changed)}" if changed else ""

    def windows(self) -> list[LoadWindow]:
        """Return the recorded windows; an incomplete last line is ignored."""
        found = []
        for line in (self.folder / WINDOWS_FILE).read_bytes().splitlines():
            try:
                found.append(self._decoder.decode(line))
            except msgspec.DecodeError:
                break
        return found

    def rewrite(self, windows: Sequence[LoadWindow]) -> None:
        """Replace the recorded windows."""
        content = b"".join(self._encoder.encode(each) + b"\n" for each in windows)
        with _explained(self.folder):
            (self.folder / WINDOWS_FILE).write_bytes(content)

    def append(self, window: LoadWindow) -> None:
        """Record a window."""
        with _explained(self.folder), (self.folder / WINDOWS_FILE).open("ab") as file:
            file.write(self._encoder.encode(window) + b"\n")


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartupError(
            f"the study cannot be written to {folder}: {error.strerror}; use --study FOLDER"
        ) from error


class RecordingMeasurer:
    """Records every window, after replaying those of an interrupted study.

    A search depends on its windows only, so that it takes the same path again, and continues where
    it ended.
    """

    def __init__(self, measurer: Measurer, journal: Journal) -> None:
        self._measurer = measurer
        self._journal = journal
        self._recorded = journal.windows()
        self._replayed: list[LoadWindow] = []
        self.replayed_s = self._recorded[-1].ended_s if self._recorded else 0.0
        self.elapsed_s = 0.0

    async def measure(self, candidate: Candidate, level: LoadLevel, seconds: float) -> LoadWindow:
        """Return the recorded window, or measure one. Raises StartupError."""
        if self._recorded:
            window = self._recorded.pop(0)
            if window.candidate == candidate.key and math.isclose(
                window.level.value, level.value, rel_tol=1e-6
            ):
                self._replayed.append(window)
                self.elapsed_s = window.ended_s
                return window
            self._recorded.clear()  # another version of the search took another path
            self._journal.rewrite(self._replayed)
            self.replayed_s = self.elapsed_s
        window = await self._measurer.measure(candidate, level, seconds)
        window = msgspec.structs.replace(window, ended_s=self.replayed_s + window.ended_s)
        self.elapsed_s = window.ended_s
        self._journal.append(window)
        return window


def percentile_interval(histogram: LatencyHistogram, percent: float) -> Interval:
    """Return a percentile in seconds, with its 95 % interval by order statistics."""
    count = histogram.total
    if not count:
        return Interval(0.0, 0.0, None)
    share = percent / 100
    spread = 1.96 * math.sqrt(share * (1 - share) / count)
    low = max(share - spread, 0.0) * 100
    high = (share + spread) * 100
    values = histogram.percentiles([low, percent, min(high, 100.0)])
    known = high <= 100 * (1 - 0.5 / count)  # else no measured value is above the percentile
    return Interval(values[1] / 1e9, values[0] / 1e9, values[2] / 1e9 if known else None)
