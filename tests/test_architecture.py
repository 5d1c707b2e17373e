"""Rules about the structure of the project."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp
import msgspec
import pytest

import tritonpy
import tritonpy_checks
import tritonpy_testing
from tests import run
from tritonpy import Code, Options, TritonError, error_of, hookspecs
from tritonpy.plugins import make_plugin_manager
from tritonpy_config.server import ServerConfig
from tritonpy_config.server.expectation import description
from tritonpy_types import errors

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".venv", ".test-venv", "build", "dist", "__pycache__"}
MAX_LINES = 700
MAX_FUNCTION_LINES = 60
# The core holds what every server needs. A feature that a server can run without is a plugin.
MAX_CORE_LINES = 20_000
MAX_CORE_FILES = 200
SMALL = 60  # a module with fewer lines needs two importers
# Public functions that are a topic of their own, and the core's plugin, which an entry point names.
SMALL_WITH_ONE_IMPORTER = frozenset({"builtin", "call_threads", "private_folders", "string_check"})
HEAVY = (
    "litestar",
    "uvicorn",
    "uvloop",
    "grpc",
    "onnxruntime",
    "onnx",
    "prometheus_client",
    "yaml",
    "opentelemetry",
)
HOOKS = [name for name in vars(hookspecs) if name.startswith("tritonpy_")]
HOOKS_PAGE = ROOT / "docs" / "hooks.md"


def files(ending: str) -> list[Path]:
    return sorted(
        path
        for path in ROOT.rglob(f"*{ending}")
        if not SKIPPED.intersection(parts := path.relative_to(ROOT).parts)
        and not any(part.startswith(".") for part in parts)
    )


PYTHON = [path for path in files(".py") if not path.name.endswith("_pb2.py")]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def test_files_are_short() -> None:
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in PYTHON
    }
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_functions_are_short() -> None:
    lengths = {
        f"{relative(path)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in PYTHON
        for node in functions(path)
    }
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


CORE = ROOT / "core"
CORE_MODULES = {
    ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PYTHON
    if path.is_relative_to(CORE / "tritonpy")
}


def imported(path: Path) -> set[str]:
    """Return the modules of the core that `path` imports, for type checking or lazily as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(":")[0])
    return found & set(CORE_MODULES)


def test_the_core_is_small() -> None:
    lines = sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in CORE_MODULES.values()
    )
    assert lines <= MAX_CORE_LINES
    assert len(CORE_MODULES) <= MAX_CORE_FILES


def test_a_small_module_of_the_core_has_two_importers() -> None:
    importers: dict[str, set[Path]] = {name: set() for name in CORE_MODULES}
    for path in PYTHON:
        if "tests" not in path.relative_to(ROOT).parts:
            for name in imported(path):
                importers[name].add(path)
    assert [
        name
        for name, path in CORE_MODULES.items()
        if len(path.read_text(encoding="utf-8").splitlines()) < SMALL
        and len(importers[name] - {path}) < 2
        and not path.name.startswith("__")
        and path.stem not in SMALL_WITH_ONE_IMPORTER
    ] == []


@pytest.mark.parametrize(
    "module",
    [
        "tritonpy",
        "tritonpy_backend_onnx",
        "tritonpy_frontend_http",
        "tritonpy_frontend_grpc",
        "tritonpy_frontend_sagemaker",
        "tritonpy_frontend_vertex",
        "tritonpy_http_api",
        "tritonpy_metrics_prometheus",
        "tritonpy_trace_otel",
        "tritonpy_bench.command",
    ],
)
def test_importing_a_package_loads_no_framework(module: str) -> None:
    script = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", sorted((ROOT / "plugins").iterdir()), ids=lambda path: path.name)
def test_plugins_use_no_private_names_of_others(path: Path) -> None:
    own = f"tritonpy_{path.name}"
    private = [
        f"{relative(file)}:{node.lineno} {node.module}.{alias.name}"
        for file in sorted((path / own).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] != own
        for alias in node.names
        if node.module.startswith("tritonpy")
        and any(
            part.startswith("_") and part != "__version__"
            for part in [*node.module.split("."), alias.name]
        )
    ]
    assert private == []


def test_core_has_no_import_cycles() -> None:
    """Imports for type checking and inside functions count."""
    graph = grimp.build_graph("tritonpy", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(reversed(error.args[1]))}")


def public_modules() -> list[ModuleType]:
    """Return the modules of the core whose names plugins may use."""
    namespaces = [
        path.parent.name if path.stem == "__init__" else path.stem
        for path in PYTHON
        if relative(path).startswith("core/tritonpy/")
        and "lazy_names(\n" in path.read_text(encoding="utf-8")
    ]
    return [tritonpy, *(importlib.import_module(f"tritonpy.{name}") for name in namespaces)]


def test_public_names_exist() -> None:
    assert [name for name in tritonpy_testing.__all__ if not hasattr(tritonpy_testing, name)] == []


def test_every_hook_is_documented_with_its_signature_and_meaning() -> None:
    page = HOOKS_PAGE.read_text(encoding="utf-8")
    for name in HOOKS:
        hook = getattr(hookspecs, name)
        signature = f"{name}{inspect.signature(hook)}".replace("'", "")
        assert f"### `{signature}`\n\n{inspect.getdoc(hook)}\n" in page
    assert set(re.findall(r"`(tritonpy_\w+)\(", page)) == set(HOOKS)


def registers_classes(name: str) -> bool:
    return "type[" in str(inspect.signature(getattr(hookspecs, name)))


@pytest.mark.parametrize("name", list(filter(registers_classes, hookspecs.registration_hooks())))
def test_the_hooks_page_names_the_class_and_the_contract_of_each_hook(name: str) -> None:
    page = HOOKS_PAGE.read_text(encoding="utf-8")
    section = page.partition(f"### `{name}()")[2].partition("###")[0]
    kind = re.search(r"type\[(\w+)\]", str(inspect.signature(getattr(hookspecs, name))))
    assert kind
    modules = [*public_modules(), tritonpy_checks]
    [module] = [module for module in modules if kind[1] in module.__all__]
    assert f"`{module.__name__}.{kind[1]}`" in section
    assert inspect.isclass(getattr(module, kind[1]))
    assert f"`tritonpy_testing.{kind[1]}Contract`" in section
    assert inspect.isclass(getattr(tritonpy_testing, f"{kind[1]}Contract"))


def option_classes() -> dict[str, type[Options]]:
    """Return the options of every class that a project plugin registers, by section and name."""
    manager = make_plugin_manager()
    found = {}
    for hook in hookspecs.registration_hooks():
        for name, entry in manager.table(hook).items():
            options = getattr(entry.load(), "Options", None)
            if options is not None and entry.owner.startswith("tritonpy"):
                found[f"{hook}:{name}"] = options
    return found


def test_every_option_is_described() -> None:
    found = option_classes()
    assert {
        "tritonpy_frontends:http",
        "tritonpy_frontends:grpc",
        "tritonpy_frontends:metrics",
        "tritonpy_backends:onnxruntime",
    } <= set(found)
    bare = [
        f"{where}.{field.name}"
        for where, options in found.items()
        for field in msgspec.structs.fields(options)
        if not description(field.type)
    ]
    assert bare == []


def test_the_complete_help_lists_every_key_of_server_yaml() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "tritonpy", "serve", "--help-all"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for where, options in option_classes().items():
        for field in msgspec.structs.fields(options):
            assert f"{field.name}: " in help_text, where
    assert {field.name for field in msgspec.structs.fields(ServerConfig)} >= {
        "repositories",
        "frontends",
        "backends",
    }


@pytest.mark.parametrize("code", Code)
def test_every_error_code_has_a_class_a_meaning_and_a_status_in_both_protocols(code: Code) -> None:
    from tritonpy_frontend_grpc import status as grpc_status
    from tritonpy_http_api.errors import STATUS

    kind = type(error_of(code, "text"))
    assert issubclass(kind, TritonError)
    assert kind.__doc__
    assert re.search(rf"\b{kind.__name__}\b.*\b{code.name}\b", errors.__doc__ or ""), (
        "the tree in the docstring of errors names it"
    )
    assert STATUS[code] >= 400
    assert any(isinstance(table, dict) and code in table for table in vars(grpc_status).values())


LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PAGES = [path for path in files(".md") if "tests" not in path.parts]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_relative_links_resolve(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_anchors_of_links_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert [
        (to, anchor)
        for to, anchor in links
        if anchor not in anchors(page.parent / to if to else page)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_prose_is_wrapped_at_120_columns(page: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [
        line
        for line in prose.splitlines()
        if not line.startswith(("|", "#", "    ")) and "](" not in line
    ]
    assert [line for line in lines if len(line) > 120] == []


def test_every_page_is_reachable_from_the_readme() -> None:
    found, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in found:
            found.add(page)
            links = LINK.findall(page.read_text(encoding="utf-8"))
            waiting.extend(
                (page.parent / link).resolve()
                for link in links
                if link.endswith(".md") and "://" not in link
            )
    pages = {
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "plugins").glob("*/README.md"),
        *ROOT.glob("*.md"),
    }
    assert sorted(relative(page) for page in pages - found) == []


PACKAGES = [
    path
    for path in PYTHON
    if path.name == "__init__.py"
    and re.match(r"(core|libs/\w+|plugins/\w+)/tritonpy", relative(path))
    and len(list(path.parent.glob("*.py"))) > 3
]


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_a_package_says_what_it_holds_and_where_to_start(package: Path) -> None:
    text = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    assert len(text.split("\n\n")) > 1, (
        "first what it holds, then where to start reading and what it may import"
    )


def test_the_architecture_page_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize(
    "page",
    [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")],
    ids=relative,
)
def test_mentioned_paths_exist(page: Path) -> None:
    named = re.findall(
        r"`((?:core|libs|protos|plugins|tests|tools|bench|examples|docs)/[\w./-]*)`",
        page.read_text(encoding="utf-8"),
    )
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


PROJECTS = [
    path.parent
    for pattern in ("*", "libs/*", "plugins/*")
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
]


@pytest.mark.parametrize("project", PROJECTS, ids=relative)
def test_every_distribution_has_a_readme_with_an_example(project: Path) -> None:
    page = (project / "README.md").read_text(encoding="utf-8")
    assert "```" in page or "\n    " in page
    assert '\nreadme = "README.md"\n' in (project / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("project", PROJECTS, ids=relative)
def test_every_distribution_is_typed_and_has_the_version_of_the_core(project: Path) -> None:
    name = {"core": "tritonpy", "protos": "tritonpy_protos"}.get(
        project.name, f"tritonpy_{project.name}"
    )
    assert (project / name / "py.typed").is_file()
    assert f'\nversion = "{tritonpy.__version__}"\n' in (project / "pyproject.toml").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("project", PROJECTS, ids=relative)
def test_every_distribution_has_its_own_tests_which_the_test_command_runs(project: Path) -> None:
    assert list((project / "tests").rglob("test_*.py"))
    assert any(f"{relative(project)}/tests" in tier.paths for tier in run.TIERS.values())


@pytest.mark.parametrize(
    "folder",
    [
        "libs/ipc/tritonpy_ipc",
        "core/tritonpy/runners",
        "plugins/backend_python/tritonpy_backend_python/worker",
    ],
)
def test_the_request_path_uses_no_pickle(folder: str) -> None:
    """Unpickling a worker's data would run its code in the server. Queues pickle, too."""
    refused = {
        "pickle",
        "cPickle",
        "_pickle",
        "cloudpickle",
        "dill",
        "marshal",
        "shelve",
        "multiprocessing",
    }
    found = {
        f"{relative(path)}:{node.lineno}"
        for path in PYTHON
        if path.is_relative_to(ROOT / folder)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        if name.partition(".")[0] in refused
    }
    assert found == set()
