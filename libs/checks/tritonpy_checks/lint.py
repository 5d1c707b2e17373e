"""Lint rules, the model that they check, and their findings."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tritonpy_config.problem import ConfigProblem, Positions
from tritonpy_protos.model_config_pb2 import ModelConfig


class Level(enum.Enum):
    """How serious a finding is."""

    ERROR = "error"
    """The server does not load the model."""
    WARNING = "warning"
    """The model loads, and probably does not do what its author wants."""
    ADVICE = "advice"
    """The model could be faster or safer."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the characters from `start` to `end` of a text file by `text`."""

    file: Path
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NewFolder:
    """A folder to create."""

    path: Path


@dataclass(frozen=True, slots=True)
class Move:
    """A file to move. Its target does not exist, the target's folder may not exist either."""

    source: Path
    target: Path


Change = Edit | NewFolder | Move


@dataclass(frozen=True, slots=True)
class Fix:
    """Changes that remove a finding.

    A `safe` fix keeps what the author meant: it only makes a model loadable, or removes text
    without effect. Other fixes are applied on request (`--unsafe-fixes`).
    """

    title: str
    changes: tuple[Change, ...]
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why the server does not load a model: the code of its rule, and the server's text.

    `key` is the path in the configuration, such as `input[0].dims`.
    """

    code: str
    key: str
    text: str
    line: int | None = None
    column: int | None = None
    file: str = ""
    """The file with the problem; empty for the configuration."""

    @classmethod
    def of(cls, code: str, problem: ConfigProblem) -> Problem:
        """Return the problem of a configuration with the code of its rule."""
        return cls(code, problem.path, problem.text, problem.line, problem.column)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a rule.

    `message` says what is wrong, and `advice` what to do. `line` and `column` start at 1.
    """

    code: str
    level: Level
    file: str
    message: str
    advice: str = ""
    key: str = ""
    line: int | None = None
    column: int | None = None
    fix: Fix | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that will run the server.

    `memory` is its main memory or the limit of its control group, in bytes; 0 if unknown.
    """

    cores: int = 1
    gpus: tuple[int, ...] = ()
    memory: int = 0


@dataclass(slots=True)
class LintModel:
    """One model of a repository, read as the server reads it, but never loaded.

    - `name`: the name of its folder; `folder`: its local path, None in a remote repository.
    - `files`: relative paths of its files, empty folders with a slash at the end.
    - `file`, `text`: the configuration file and its content; the text is empty without a file.
    - `given`: the configuration as written; `positions`: where its keys are in the text.
    - `config`: the configuration with all defaults. None if no backend could be found.
    - `is_complete`: False if parts of the text have errors, so that absent keys may be among them.
    - `signature`: the configuration that the backend derives from the model's file alone. None
      without a backend that can read it.
    - `parameters`: the keys of `parameters` that the backend reads; empty if they are not known.
    - `versions`: the versions that the server would load.
    - `problems`: what the server itself reports.
    - `models`: all models of the repository by name, including this one.
    - `loads`: False once a rule has found an error in it.
    """

    name: str
    folder: Path | None
    files: Collection[str]
    file: str
    text: str
    given: ModelConfig
    positions: Positions
    read: Callable[[str], bytes | None]
    """Returns the content of a file of the model, or None if it does not exist."""
    machine: Machine = Machine()
    config: ModelConfig | None = None
    is_complete: bool = True
    signature: ModelConfig | None = None
    parameters: Collection[str] = ()
    versions: Collection[int] = ()
    problems: list[Problem] = field(default_factory=list)
    models: Mapping[str, LintModel] = field(default_factory=dict)
    loads: bool = True

    @property
    def config_path(self) -> Path | None:
        """The configuration file, or None if the model has none or is remote."""
        return Path(self.file) if self.text and self.folder is not None else None

    def has_file(self, path: str) -> bool:
        """Return whether the model has a file or folder with this relative path."""
        return any(name.rstrip("/") == path or name.startswith(f"{path}/") for name in self.files)


class LintRule(ABC):
    """A check of one model.

    A plugin registers the class by its code under the hook `tritonpy_lint_rules`. A complete rule:

        class NoVariableBatch(LintRule):
            level = Level.ADVICE
            title = "Batches of one"
            reason = "A GPU needs larger batches."
            bad = {"config.pbtxt": 'backend: "python" max_batch_size: 1', "1/model.py": "…"}
            good = {"config.pbtxt": 'backend: "python" max_batch_size: 8', "1/model.py": "…"}

            def check(self, model):
                if model.config is not None and model.config.max_batch_size == 1:
                    yield self.finding(model, "max_batch_size", "the maximum batch size is 1")

    `bad` and `good` are the files of two small models, the first with the finding and the second
    without. `tritonpy explain CODE` shows them. `tritonpy_testing.LintRuleContract` checks them.
    """

    level: ClassVar[Level] = Level.WARNING
    title: ClassVar[str]
    """The mistake in a few words, without a full stop."""
    reason: ClassVar[str]
    """Why it matters, in one or two sentences."""
    bad: ClassVar[Mapping[str, str]]
    good: ClassVar[Mapping[str, str]]

    def __init__(self, code: str) -> None:
        self.code = code

    @abstractmethod
    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield the findings in `model`."""

    def finding(
        self,
        model: LintModel,
        key: str,
        message: str,
        advice: str = "",
        *,
        fix: Fix | None = None,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        level: Level | None = None,
    ) -> Finding:
        """Return a finding at a key of the configuration, or at a line of another file."""
        if not file and line is None and (place := model.positions.nearest(key)):
            line, column = place
        return Finding(
            self.code,
            level or self.level,
            file or model.file,
            message,
            advice,
            key,
            line,
            column,
            fix,
            model.name,
        )
