"""Reads models as the server does, up to the point where it would load them.

Each stage reports all it finds. A stage that fails hides only what depends on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from tritonpy_checks.lint import LintModel, Machine, Problem
from tritonpy_config.backend_folders import library_name
from tritonpy_config.completion import fill_backend, merge_auto_complete
from tritonpy_config.config_file import CONFIG_FILE, with_positions
from tritonpy_config.dependencies import find_cycle, is_ensemble, member_names
from tritonpy_config.folder_hints import layout_hint
from tritonpy_config.known_backends import BackendFiles, formats
from tritonpy_config.model_text import read_config_text
from tritonpy_config.normalization import normalize
from tritonpy_config.problem import ConfigProblem, ParsedConfig, Positions
from tritonpy_config.validate import validate
from tritonpy_config.validate.batch_strategy import batch_library_problems
from tritonpy_config.validate.ensemble_members import member_problems
from tritonpy_config.versions import version_folders, versions_to_load
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import InvalidArgument, TritonError

PYTHON = "python"
LATEST = -1

# The code of a problem that the validator reports: the first pattern that its path and text match.
_CODES: Sequence[tuple[str, str, str]] = (
    (r"name$", r"directory name", "F003"),
    (r"", r"outside the model's folder|null character|is too long|escapes backend", "F010"),
    (r"(platform|backend)$", r"", "B001"),
    (r".*reshape", r"empty reshape", "S003"),
    (r".*", r"for dims and reshape", "S005"),
    (r".*", r"warmup|model_warmup", "W001"),
    (r".*preferred_batch_size", r"", "D002"),
    (r"dynamic_batching", r"", "D005"),
    (r"(input|output)\[", r"ensemble", "E001"),
    (r"ensemble_scheduling", r"inconsistent|maximum batch size|decoupled", "E002"),
    (r"ensemble_scheduling", r"", "E001"),
    (r"output", r"different decoupled models", "E002"),
    (r"", r"ensemble", "E001"),
    (r"sequence_batching", r"", "Q001"),
    (r"response_cache", r"", "C001"),
    (r"model_warmup", r"", "W001"),
    (r"instance_group", r"", "I001"),
    (r"(input|output|batch_input|batch_output)", r"", "S006"),
)


@dataclass(frozen=True, slots=True)
class InstalledBackend:
    """What the reader needs to know of an installed backend: class attributes of `Backend`."""

    files: BackendFiles
    default_instance_count: int = 1
    uses_gpu: bool = False
    parameters: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, kind: Any) -> InstalledBackend:
        """Return the description of the backend class `kind`, registered as `name`."""
        files = BackendFiles(name, kind.platforms, kind.default_filenames)
        return cls(files, kind.default_instance_count, kind.uses_gpu, kind.model_parameters)


@dataclass(frozen=True, slots=True)
class ModelFileContent:
    """What a backend derives from a model's files.

    `signature` is the configuration derived from the file alone, `completed` that of the model's
    own configuration. `error` is the backend's error text.
    """

    signature: ModelConfig | None = None
    completed: ModelConfig | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryModel:
    """The files of one model: relative paths, and a function that reads one of them."""

    name: str
    files: Collection[str]
    read: Callable[[str], bytes | None]
    folder: Path | None = None

    @classmethod
    def of(cls, folder: Path) -> RepositoryModel:
        """Return the files of the model in a local folder."""

        def read(path: str) -> bytes | None:
            try:
                return (folder / path).read_bytes()
            except OSError:
                return None

        return cls(folder.name, sorted(_files(folder)), read, folder)


def _files(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, links followed, and empty folders with a slash."""
    seen: set[tuple[int, int]] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        status = os.stat(root)
        if (status.st_dev, status.st_ino) in seen:  # a link to a folder above would never end
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        relative = Path(root).relative_to(folder).as_posix()
        prefix = "" if relative == "." else f"{relative}/"
        if prefix and not folders and not names:
            yield prefix
        yield from (f"{prefix}{name}" for name in names)


@dataclass(slots=True)
class ModelReader:
    """Reads the models of one repository.

    `backends` are the installed backends by name; None if all backends are taken as installed.
    `describe` returns the contents of model files by model name, for models with a backend.
    """

    backends: Mapping[str, InstalledBackend]
    machine: Machine = field(default_factory=Machine)
    config_name: str = ""
    auto_complete: bool = True
    """Whether the server completes configurations from model files."""
    has_folder: Callable[[str], bool] = lambda _name: False
    """Whether a Python-based backend of this name is in the server's folder of backends."""

    def read(
        self,
        models: Iterable[RepositoryModel],
        describe: Callable[[Sequence[LintModel]], Mapping[str, ModelFileContent]] | None = None,
    ) -> dict[str, LintModel]:
        """Return the models by name, each with the problems that the server would report."""
        return self.read_all([models], describe)[0]

    def read_all(
        self,
        repositories: Sequence[Iterable[RepositoryModel]],
        describe: Callable[[Sequence[LintModel]], Mapping[str, ModelFileContent]] | None = None,
    ) -> list[dict[str, LintModel]]:
        """Return the models of several repositories of one server.

        An ensemble finds its members in its own repository first, then in the others.
        """
        found = [{each.name: self._parsed(each) for each in models} for models in repositories]
        for models in found:
            described = [model for model in models.values() if self._has_readable_file(model)]
            contents = describe(described) if describe is not None else {}
            for model in models.values():
                self._complete(model, contents.get(model.name, ModelFileContent()))
        every = {name: model for models in reversed(found) for name, model in models.items()}
        for models in found:
            known = {**every, **models}
            for model in models.values():
                model.models = known
        for models in found:
            for model in models.values():
                model.problems += [*_member_problems(model), *_cycle_problems(model)]
        return found

    def _parsed(self, files: RepositoryModel) -> LintModel:
        name = f"configs/{self.config_name}.pbtxt" if self.config_name else CONFIG_FILE
        content = files.read(name)
        if content is None and name != CONFIG_FILE:
            name = CONFIG_FILE
            content = files.read(name)
        reading = (
            ParsedConfig(ModelConfig(), Positions(), [])
            if content is None
            else read_config_text(content)
        )
        model = LintModel(
            name=files.name,
            folder=files.folder,
            files=files.files,
            file=str(files.folder / name) if files.folder else f"{files.name}/{name}",
            text=(content or b"").decode("utf-8-sig", errors="replace"),
            given=reading.config,
            positions=reading.positions,
            read=files.read,
            machine=self.machine,
        )
        model.problems += [Problem.of(_syntax_code(each), each) for each in reading.problems]
        if content is None and name in files.files:
            model.problems.append(Problem("G001", "", "the configuration cannot be read"))
        try:
            config = fill_backend(model.given, model.name, model.files, self._installed())
        except InvalidArgument as error:
            if not reading.problems:
                model.problems.append(self._backend_problem(model, error))
            return model
        model.config = config
        if config.backend in self.backends:
            model.parameters = self.backends[config.backend].parameters
        known = [config.backend] if config.backend else []
        for name in known:
            own = _has_library(model, config.runtime or library_name(name))
            if name not in self.backends and not self.has_folder(name) and not own:
                model.problems.append(Problem("B002", "backend", f"no plugin provides '{name}'"))
        return model

    def _installed(self) -> list[BackendFiles]:
        return [backend.files for backend in self.backends.values()]

    def _backend_problem(self, model: LintModel, error: InvalidArgument) -> Problem:
        hint = layout_hint(model.name, model.files, formats(self._installed()))
        if model.given.HasField("ensemble_scheduling") and not model.given.platform:
            text = "the model has ensemble_scheduling, but no platform"
            return _placed(model, "B001", "ensemble_scheduling", text)
        if not model.text and not version_folders(model.files)[0] and "move it" not in hint:
            return Problem("F011", "", hint, file=str(model.folder))
        code = "F002" if "rename it to" in hint and "version folder" not in hint else "F001"
        return Problem(code, "", hint or error.message, file=str(model.folder or model.name))

    def _has_readable_file(self, model: LintModel) -> bool:
        """Return whether an installed backend may read the model's tensors without its code."""
        backend = model.config.backend if model.config is not None else ""
        return model.folder is not None and backend != PYTHON and backend in self.backends

    def _complete(self, model: LintModel, content: ModelFileContent) -> None:
        """Find the versions, complete and normalize the configuration, and validate it."""
        config, syntax = model.config, list(model.problems)
        if config is None:
            config = ModelConfig()
            config.CopyFrom(model.given)
            config.name = config.name or model.name
        model.signature = content.signature
        given = self._normalized(config)
        available, _ = version_folders(model.files)
        model.versions, missing = versions_to_load(given, available)
        if content.completed is not None and self.auto_complete:
            given = self._normalized(_merged(given, content.completed, model))
        hidden = any(problem.code in {"F006", "F007", "F008"} for problem in syntax)
        unread = [problem.key for problem in syntax]
        has_tensors = not _completes_itself(model)
        for problem in self._validation(given, model, tensors=has_tensors):
            written = problem.path in model.positions
            if hidden and (not written or any(p.startswith(problem.path) for p in unread)):
                continue
            [placed] = with_positions([problem], model.positions)
            model.problems.append(Problem.of(code_of(problem), placed))
        if model.folder is not None:
            for problem in batch_library_problems(given, model.folder):
                model.problems.append(Problem.of("G001", problem))
        model.is_complete = not hidden
        if model.config is not None:
            model.problems += _version_problems(model, given, available, missing)
            if content.error and not any(p.code == "F002" for p in model.problems):
                model.problems.append(Problem("F009", "", content.error))
        model.config = None if model.config is None else given

    def _validation(
        self, config: ModelConfig, model: LintModel, *, tensors: bool
    ) -> Iterator[ConfigProblem]:
        problems = validate(config, model.name, self.machine.gpus, tensors=tensors)
        no_backend = model.config is None or any(p.code == "F001" for p in model.problems)
        for problem in problems:
            if no_backend and problem.path in {"platform", "backend"} and not model.given.platform:
                continue  # reported as a problem of the folder
            yield problem

    def _normalized(self, config: ModelConfig) -> ModelConfig:
        backend = self.backends.get(config.backend)
        gpus = self.machine.gpus
        if backend is None:
            return normalize(config, gpus)
        return normalize(config, gpus, backend.default_instance_count, backend.uses_gpu)


def code_of(problem: ConfigProblem) -> str:
    """Return the code of the rule for a problem that the validator reports."""
    for path, text, code in _CODES:
        if re.match(path, problem.path) and re.search(text, problem.text):
            return code
    return "G001"


def _syntax_code(problem: ConfigProblem) -> str:
    if problem.text.startswith("unknown field"):
        return "F007"
    return "F008" if problem.path else "F006"


def _merged(config: ModelConfig, completed: ModelConfig, model: LintModel) -> ModelConfig:
    try:
        return merge_auto_complete(config, completed)
    except TritonError as error:
        model.problems.append(Problem("F009", "", error.message))
        return config


def _completes_itself(model: LintModel) -> bool:
    """Return whether the model's own code completes the configuration, which lint does not run."""
    config = model.config
    if config is None or config.HasField("ensemble_scheduling") or config.backend != PYTHON:
        return False
    file = config.default_model_filename or "model.py"
    return any(
        b"auto_complete_config" in (model.read(f"{version}/{file}") or b"")
        for version in version_folders(model.files)[0]
    )


def _has_library(model: LintModel, name: str) -> bool:
    """Return whether `name` is a library of a backend in C in the model's own folder."""
    return name.endswith(".so") and any(PurePath(file).name == name for file in model.files)


def _version_problems(
    model: LintModel, config: ModelConfig, available: Sequence[int], missing: Sequence[int]
) -> Iterator[Problem]:
    if not available:
        hint = layout_hint(model.name, model.files, formats(()))
        yield Problem("F001", "", hint or "it has no version folder", file=str(model.folder))
        return
    if not model.versions:
        listed = ", ".join(map(str, missing)) or "none"
        text = f"the version policy selects no existing version (versions {listed} do not exist)"
        place = model.positions.nearest("version_policy")
        yield Problem("V001", "version_policy", text, *(place or (None, None)))
        return
    filename = config.default_model_filename
    if is_ensemble(config) or not filename or not model.is_complete:
        return
    if _has_library(model, config.runtime):  # it alone knows which files it needs
        return
    for version in model.versions:
        names = {config.default_model_filename, *config.cc_model_filenames.values()}
        if not any(model.has_file(f"{version}/{name.lstrip('/')}") for name in names):
            place = model.positions.nearest("default_model_filename")
            key = "default_model_filename"
            text = f"the file '{version}/{filename}' does not exist"
            yield Problem("F002", key, text, *(place or (None, None)))


def _member_problems(model: LintModel) -> Iterator[Problem]:
    """Yield mismatches between an ensemble and its members, and members that do not exist."""
    config = model.config
    if config is None or not is_ensemble(config):
        return
    steps = config.ensemble_scheduling.step
    members = [model.models.get(step.model_name) for step in steps]
    for index, (step, member) in enumerate(zip(steps, members, strict=True)):
        key = f"ensemble_scheduling.step[{index}]"
        if member is None and step.model_name:
            text = f"step {index} runs the model '{step.model_name}', which does not exist"
            yield _placed(model, "E003", f"{key}.model_name", text)
        elif member is not None and step.model_version not in {LATEST, *member.versions}:
            text = (
                f"step {index} runs version {step.model_version} of '{step.model_name}', "
                "which is not loaded"
            )
            yield _placed(model, "E003", f"{key}.model_version", text)
    if not model.is_complete or any(problem.code == "E001" for problem in model.problems):
        return
    known = [
        (step, member.config)
        for step, member in zip(steps, members, strict=True)
        if member is not None
        and member.config is not None
        and member.is_complete
        and not _completes_itself(member)
    ]
    if len(known) != len(steps):
        return
    found = member_problems(model.name, config, [member for _, member in known])
    for problem in with_positions(found, model.positions):
        yield Problem.of(code_of(problem), problem)


def _cycle_problems(model: LintModel) -> Iterator[Problem]:
    def members_of(name: str) -> Iterable[str]:
        found = model.models.get(name)
        if found is None or found.config is None or not is_ensemble(found.config):
            return ()
        return member_names(found.config)

    cycle = find_cycle(model.name, members_of)
    if cycle:
        text = f"ensembles depend on each other: {' -> '.join([*cycle, cycle[0]])}"
        yield _placed(model, "E003", "ensemble_scheduling.step", text)


def _placed(model: LintModel, code: str, key: str, text: str) -> Problem:
    place = model.positions.nearest(key)
    problem = Problem(code, key, text)
    return problem if place is None else replace(problem, line=place.line, column=place.column)
