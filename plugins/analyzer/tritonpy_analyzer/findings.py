"""What a search is asked for, what it shows, and what it has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tritonpy_analyzer.cost_model import ExecutionCost
from tritonpy_analyzer.measuring import LoadWindow
from tritonpy_analyzer.racing import Comparison
from tritonpy_analyzer.space import Candidate
from tritonpy_load_generator.options import LoadLevel


class SearchView(Protocol):
    """Shows the progress of a search."""

    def phase(self, text: str) -> None:
        """Show what begins now."""

    def progress(self, elapsed_s: float, best: str) -> None:
        """Show the elapsed time and the best candidate so far."""

    def verdict(self, text: str) -> None:
        """Show a decision."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The load and the limits of a search; a `level` of None selects it by the goals."""

    seconds: float = 300.0
    seed: int = 1
    level: LoadLevel | None = None
    max_trials: int = 0
    cores: int = 1


class SearchEnded(Exception):
    """The search was interrupted, or the machine is too busy; the results so far are kept."""


@dataclass(slots=True)
class Findings:
    """What a search has found, at any time."""

    windows: dict[Candidate, list[LoadWindow]] = field(default_factory=dict)
    estimates: dict[Candidate, list[float]] = field(default_factory=dict)
    merits: dict[Candidate, float] = field(default_factory=dict)
    """The logarithm of the first objective's ratio to the present configuration."""
    front: dict[Candidate, tuple[float, ...]] = field(default_factory=dict)
    out: dict[Candidate, str] = field(default_factory=dict)
    pruned: dict[Candidate, str] = field(default_factory=dict)
    predicted: dict[Candidate, float] = field(default_factory=dict)
    curves: dict[Candidate, list[LoadWindow]] = field(default_factory=dict)
    leader: Candidate | None = None
    gain: Comparison | None = None
    verified: tuple[float, list[LoadWindow]] | None = None
    """A rate at which the leader kept the limits for a long time, and the windows of the check."""
    cost: ExecutionCost | None = None
    dropped: list[LoadWindow] = field(default_factory=list)
    count: int = 0
    too_noisy: bool = False
    violated: str = ""
