"""Checks repositories and server.yaml with every rule, and collects the findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tritonpy.config import (
    InvalidServerConfig,
    ServerConfig,
    anchor_paths,
    decode_options,
    decode_server_config,
    read_server_yaml,
)
from tritonpy.plugins import (
    BackendFolders,
    Backends,
    PluginManager,
    check_plugin_options,
    make_plugin_manager,
)
from tritonpy.repository import ModelListing, Repository, RepositoryContext, redact_urls
from tritonpy_checks import Finding, Level, LintModel, LintRule, Machine
from tritonpy_checks.machine import this_machine
from tritonpy_checks.model_reader import (
    InstalledBackend,
    ModelFileContent,
    ModelReader,
    RepositoryModel,
)
from tritonpy_config.config_file import with_positions
from tritonpy_config.problem import Positions
from tritonpy_lint.model_file_reader import read_model_files
from tritonpy_lint.suppression import Suppressions
from tritonpy_types.errors import PluginError, StartupError, TritonError

SERVER_YAML = "Y001"
UNUSED_IGNORE = "L001"
READ_ERROR = "R001"
DUPLICATE = "R002"
OWN_CODES = {
    SERVER_YAML: (
        "server.yaml is invalid",
        "The server does not start with a key it does not know or a value of the wrong type.",
    ),
    UNUSED_IGNORE: (
        "An ignore comment has no effect",
        "A comment that ignores nothing hides the next mistake of its kind.",
    ),
    READ_ERROR: ("A repository cannot be read", "The server does not start without it."),
    DUPLICATE: (
        "Two repositories have a model of the same name",
        "The server serves neither, unless model_namespacing is set.",
    ),
}
"""Findings that concern no model: their titles and reasons."""

_TENSOR_CODES = frozenset({"S001", "S002", "S003", "S005", "S007", "T001", "T002", "T003"})
_MEMBER_CODE = "E004"


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What to check.

    `paths` are repositories (folders or URLs), models, or configuration files. `server` is a
    server.yaml with repositories and options. `select` and `ignore` are codes or their beginnings.
    """

    paths: Sequence[str] = ()
    server: Path | None = None
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    machine: Machine = field(default_factory=this_machine)
    model_files: bool = True
    config_name: str = ""
    progress: Callable[[str], None] = lambda _text: None


@dataclass(slots=True)
class LintResult:
    """The findings in the order of files and lines, the models that were checked, and the rules."""

    findings: list[Finding] = field(default_factory=list)
    models: list[LintModel] = field(default_factory=list)
    rules: Mapping[str, LintRule] = field(default_factory=dict)

    def count(self, level: Level) -> int:
        """Return the number of findings of a level."""
        return sum(finding.level is level for finding in self.findings)


def load_rules(manager: PluginManager) -> dict[str, LintRule]:
    """Return the rules of all plugins by code. Raises PluginError if one cannot be imported."""
    table = manager.table("tritonpy_lint_rules")
    return {code: table[code].load()(code) for code in sorted(table)}


def lint(options: LintOptions) -> LintResult:
    """Return all findings in the repositories and files of `options`.

    Raises StartupError for a path that does not exist.
    """
    result = LintResult()
    server, positions, problems = _read_server(options.server)
    result.findings += problems
    settings = server.lint
    options = replace(
        options,
        select=options.select or settings.select,
        ignore=[*options.ignore, *settings.ignore],
    )
    manager = make_plugin_manager(disable=server.plugins.disable)
    if options.server is not None:
        result.findings += _plugin_problems(options.server, server, positions, manager)
    result.rules = load_rules(manager)
    _check_places(_places(options, server), options, server, manager, result)
    result.findings = sorted(
        (each for each in result.findings if _is_selected(each.code, options)), key=_order
    )
    return result


@dataclass(frozen=True, slots=True)
class _Place:
    """A repository, and the only model of it to report, or ""."""

    url: str
    model: str = ""


def _places(options: LintOptions, server: ServerConfig) -> list[_Place]:
    if not options.paths:
        if options.server is not None or Path("models").is_dir():
            return [_Place(each.url) for each in server.repositories]
        return [_place(".")]
    return [_place(path) for path in options.paths if not path.endswith((".yaml", ".yml"))]


def _place(path: str) -> _Place:
    if "://" in path:
        return _Place(path)
    folder = Path(path)
    if not folder.exists():
        raise StartupError(f"'{path}' does not exist: give a repository, a model or a config.pbtxt")
    if folder.is_file():
        folder = folder.parent
        folder = folder.parent if folder.name == "configs" else folder
    if is_model(folder):
        folder = folder.resolve()
        return _Place(str(folder.parent), folder.name)
    return _Place(str(folder))


def is_model(folder: Path) -> bool:
    """Return whether a folder is a model, not a repository: it has a configuration or a version."""
    return (folder / "config.pbtxt").is_file() or any(
        entry.name.isdigit() and entry.is_dir() and not (entry / "config.pbtxt").is_file()
        for entry in folder.iterdir()
    )


def _check_places(
    places: Sequence[_Place],
    options: LintOptions,
    server: ServerConfig,
    manager: PluginManager,
    result: LintResult,
) -> None:
    """Check the models of all places together: an ensemble may need those of another place."""
    listed: list[tuple[_Place, list[RepositoryModel]]] = []
    for place in places:
        try:
            listed.append((place, _list_models(place, server, manager)))
        except TritonError as error:
            url, text = redact_urls(place.url), redact_urls(error.message)
            result.findings.append(
                Finding(READ_ERROR, Level.ERROR, url, text, "Check the address.")
            )
    reader = ModelReader(
        installed_backends(manager),
        options.machine,
        options.config_name or server.model_config_name,
        not server.disable_auto_complete,
        make_backends(manager, server).folders.exists,
    )
    describe = partial(_describe, server, options) if options.model_files else None
    options.progress(f"reading {sum(len(models) for _, models in listed)} models")
    found = reader.read_all([models for _, models in listed], describe)
    findings = check_models([model for models in found for model in models.values()], result.rules)
    for (place, _), models in zip(listed, found, strict=True):
        reported = [models[place.model]] if place.model else list(models.values())
        result.models += reported
        for model in reported:
            result.findings += _not_ignored(model, findings[id(model)], result.rules)
    if options.server is not None and not options.paths and not server.model_namespacing:
        result.findings += _duplicates(found)


def _duplicates(repositories: Sequence[Mapping[str, LintModel]]) -> Iterator[Finding]:
    """Yield a finding per model that several repositories of a server have."""
    seen: dict[str, LintModel] = {}
    for models in repositories:
        for name, model in models.items():
            first = seen.setdefault(name, model)
            if first is not model:
                yield Finding(
                    DUPLICATE,
                    Level.ERROR,
                    str(model.folder or model.file),
                    f"the model '{name}' is in two repositories, also as {first.folder}",
                    "Remove or rename one, or set model_namespacing: true.",
                    model=name,
                )


def _list_models(
    place: _Place, server: ServerConfig, manager: PluginManager
) -> list[RepositoryModel]:
    scheme = place.url.partition("://")[0] if "://" in place.url else ""
    if not scheme or scheme == "file":
        folder = Path(place.url.removeprefix("file://"))
        try:
            return [
                RepositoryModel.of(entry)
                for entry in sorted(folder.iterdir())
                if entry.is_dir() and (entry.name == place.model or entry.name[0] != ".")
            ]
        except OSError as error:
            raise StartupError(f"'{folder}' cannot be read: {error.strerror}") from error
    kind = manager.get("tritonpy_repositories", scheme, "repository scheme").load()
    given = server.repository_options.get(scheme, {})
    own = next((each.options for each in server.repositories if each.url == place.url), {})
    decoded = decode_options(kind.Options, {**given, **own}, f"repository_options.{scheme}")
    cache = Path(os.path.expanduser("~/.cache/tritonpy/lint"))
    repository: Repository = kind(decoded, RepositoryContext(place.url, cache))
    try:
        return [_remote_files(repository, each) for each in repository.scan().values()]
    finally:
        repository.close()


def _remote_files(repository: Repository, listing: ModelListing) -> RepositoryModel:
    """Return the files of a remote model; configurations are read now, other files never."""
    small = {
        name: repository.peek(listing, name)
        for name in listing.files
        if name.endswith((".pbtxt", ".txt", "model.py"))
    }
    return RepositoryModel(listing.name, list(listing.files), small.get)


def installed_backends(manager: PluginManager) -> dict[str, InstalledBackend]:
    """Return the installed backends by name; one that cannot be imported is left out."""
    found = {}
    for name, entry in manager.table("tritonpy_backends").items():
        try:
            found[name] = InstalledBackend.of(name, entry.load())
        except PluginError:
            continue
    return found


def make_backends(manager: PluginManager, server: ServerConfig) -> Backends:
    """Return the backends of a server, with the folder of Python-based ones."""
    folders = BackendFolders(server.backend_directory)
    return Backends(manager, server.backends, server.backend_defaults, folders)


def _describe(
    server: ServerConfig, options: LintOptions, models: Sequence[LintModel]
) -> Mapping[str, ModelFileContent]:
    return read_model_files(models, server, options.machine.memory, options.progress)


def check_models(
    models: Collection[LintModel], rules: Mapping[str, LintRule]
) -> dict[int, list[Finding]]:
    """Return the findings of each model by its `id`, before ignore comments.

    A model that contains an error is marked, and so is every ensemble with such a member.
    """
    found = {
        id(model): _without_repetition(
            [
                finding
                for code, rule in rules.items()
                if code != _MEMBER_CODE
                for finding in rule.check(model)
            ]
        )
        for model in models
    }
    for model in models:
        model.loads = not any(each.level is Level.ERROR for each in found[id(model)])
    rule = rules.get(_MEMBER_CODE)
    changed = rule is not None
    while changed and rule is not None:
        changed = False
        for model in models:
            findings = list(rule.check(model)) if model.loads else []
            if findings:
                found[id(model)] += findings
                model.loads, changed = False, True
    return found


def _without_repetition(findings: list[Finding]) -> list[Finding]:
    """Return the findings without a second message about one mistake."""
    if any(each.code in _TENSOR_CODES for each in findings):
        findings = [each for each in findings if each.code != "F009"]
    return list(dict.fromkeys(findings))


def _not_ignored(
    model: LintModel, findings: Sequence[Finding], rules: Collection[str]
) -> Iterator[Finding]:
    suppressions = Suppressions.of(model.text)
    for finding in findings:
        if finding.file != model.file or not suppressions.covers(finding.code, finding.line):
            yield finding
    for line, code in suppressions.unused():
        known = any(each.startswith(code) for each in rules)
        advice = "Delete the comment." if known else "No rule has this code."
        text = f"nothing is ignored by 'lint: ignore[{code}]'"
        yield Finding(
            UNUSED_IGNORE, Level.WARNING, model.file, text, advice, "", line, 1, model=model.name
        )


def _read_server(file: Path | None) -> tuple[ServerConfig, Positions, list[Finding]]:
    """Return the configuration, the positions of its keys, and its problems.

    The configuration is the default one if the file cannot be decoded.
    """
    if file is None:
        return ServerConfig(), Positions(), []
    positions = Positions()
    try:
        raw, positions = read_server_yaml(file)
        return decode_server_config(anchor_paths(raw, file.parent)), positions, []
    except InvalidServerConfig as error:
        return ServerConfig(), positions, _server_findings(file, error, positions)


def _plugin_problems(
    file: Path, server: ServerConfig, positions: Positions, manager: PluginManager
) -> list[Finding]:
    try:
        check_plugin_options(server, manager)
    except InvalidServerConfig as error:
        return _server_findings(file, error, positions)
    return []


def read_model(folder: Path, manager: PluginManager) -> LintModel:
    """Return the model in a local folder, with the tensors of its file, read by itself alone."""
    server, machine = ServerConfig(), this_machine()
    reader = ModelReader(
        installed_backends(manager),
        machine,
        has_folder=make_backends(manager, server).folders.exists,
    )
    describe = partial(_describe, server, LintOptions(machine=machine))
    return reader.read([RepositoryModel.of(folder)], describe)[folder.name]


def _server_findings(file: Path, error: InvalidServerConfig, positions: Positions) -> list[Finding]:
    return [
        Finding(
            SERVER_YAML,
            Level.ERROR,
            str(file),
            each.text,
            "'tritonpy serve --help-all' lists every key.",
            each.path,
            each.line,
            each.column,
        )
        for each in with_positions(error.problems, positions)
    ]


def _is_selected(code: str, options: LintOptions) -> bool:
    selected = not options.select or code.startswith(tuple(options.select))
    return selected and not (options.ignore and code.startswith(tuple(options.ignore)))


def _order(finding: Finding) -> tuple[str, str, int, int, str]:
    return finding.model, finding.file, finding.line or 0, finding.column or 0, finding.code
