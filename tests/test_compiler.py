"""Compiled modules: their list, what may inherit from them, and the wheels that contain them."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import compiler  # noqa: E402
import distributions  # noqa: E402

sys.path.remove(str(ROOT / "tools"))
ALL = distributions.read_distributions()
COMPILED = [
    each.folder / module for each in ALL.values() for module in compiler.compiled_modules(each)
]
MISSING = run.missing_compiler()
needs_compiler = pytest.mark.skipif(bool(MISSING), reason=MISSING)
SAMPLE = '''
"""A module whose functions fail."""


def fail(number: int) -> int:
    return 1 // number
'''
PROJECT = """
[project]
name = "tritonpy-sample"
version = "1"
[tool.tritonpy]
compiled = ["tritonpy_sample.failing"]
"""
FAIL = """
import traceback
import tritonpy_sample.failing as module
assert not module.__file__.endswith(".py"), module.__file__
try:
    module.fail(0)
except ZeroDivisionError:
    print(traceback.format_exc())
"""


def classes(path: Path) -> Iterator[ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def base_names(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(named, (ast.Name, ast.Attribute)):
            yield named.id if isinstance(named, ast.Name) else named.attr


def test_the_listed_modules_exist() -> None:
    assert len(COMPILED) > 30
    assert [path for path in COMPILED if not path.is_file()] == []


def test_interpreted_classes_inherit_only_from_compiled_classes_that_allow_it() -> None:
    # msgspec structs stay ordinary classes. So do classes outside compiled modules.
    closed = {
        node.name: path
        for path in COMPILED
        for node in classes(path)
        if not {"Struct", "NamedTuple", "Protocol", "Enum"}.intersection(base_names(node))
        and "allow_interpreted_subclasses=True" not in map(ast.unparse, _options(node))
    }
    others = [
        path
        for folder in ("core", "libs", "plugins", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if path not in COMPILED
    ]
    # A class of the same package has precedence over a compiled one of the same name.
    own = {(_project(path), node.name) for path in others for node in classes(path)}
    assert [
        f"{path.relative_to(ROOT)}: {node.name} inherits from {base} of {closed[base].name}"
        for path in others
        for node in classes(path)
        for base in base_names(node)
        if base in closed and (_project(path), base) not in own
    ] == []


def _project(path: Path) -> Path:
    return ROOT.joinpath(*path.relative_to(ROOT).parts[:2])


def _options(node: ast.ClassDef) -> list[ast.keyword]:
    return [
        keyword
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    ]


@pytest.fixture
def sample(tmp_path: Path) -> distributions.Distribution:
    """A distribution with one compiled module."""
    folder = tmp_path / "sample"
    package = folder / "tritonpy_sample"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (package / "__init__.py").write_text("")
    (package / "failing.py").write_text(SAMPLE)
    return distributions.Distribution("tritonpy-sample", "1", folder, ())


def pure_wheel(sample: distributions.Distribution, folder: Path) -> Path:
    content = folder / "content"
    description = content / "tritonpy_sample-1.dist-info"
    description.mkdir(parents=True)
    shutil.copytree(sample.folder / "tritonpy_sample", content / "tritonpy_sample")
    (description / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tritonpy-sample\nVersion: 1\n"
    )
    (description / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    (description / "RECORD").write_text("")
    command = [sys.executable, "-m", "wheel", "pack", "--dest-dir", str(folder), str(content)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def installed(folder: Path, wheel: Path) -> Path:
    """Return the site-packages of an environment that has the wheel."""
    site = folder / "lib" / "python3" / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    return site


def error_text(site: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", FAIL],
        env={"PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@needs_compiler
def test_a_compiled_wheel_and_a_compiled_installation_name_file_and_line_of_errors(
    sample: distributions.Distribution, tmp_path: Path
) -> None:
    compiled = {sample.name: compiler.compile_distribution(sample, {sample.name: sample})}
    wheels = tmp_path / "wheels"
    pure = pure_wheel(sample, wheels)

    in_place = tmp_path / "in_place"
    site = installed(in_place, pure)
    compiler.install(compiled, in_place)
    compiler.install(compiled, in_place)
    assert 'File "tritonpy_sample/failing.py", line 6, in fail' in error_text(site)
    record = (site / "tritonpy_sample-1.dist-info" / "RECORD").read_text()
    assert record.count(compiler.SUFFIX) == len(compiled[sample.name])

    compiler.add_to_wheels(compiled, wheels)
    (own,) = [each for each in wheels.glob("*.whl") if each != pure]
    assert "-none-any" not in own.name
    site = installed(tmp_path / "from_wheel", own)
    assert 'File "tritonpy_sample/failing.py", line 6, in fail' in error_text(site)


@needs_compiler
def test_a_module_that_cannot_be_compiled_is_an_error_with_the_reason(
    sample: distributions.Distribution,
) -> None:
    (sample.folder / "tritonpy_sample" / "failing.py").write_text(
        "def fail() -> int:\n    return ''\n"
    )
    with pytest.raises(compiler.CompilationFailed, match=r"failing\.py:2: error: Incompatible"):
        compiler.compile_distribution(sample, {sample.name: sample})


def test_a_link_to_the_checkout_is_not_compiled(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3" / "site-packages"
    description = site / "tritonpy_sample-1.dist-info"
    description.mkdir(parents=True)
    (description / "RECORD").write_text("tritonpy_sample.pth,,\n")
    with pytest.raises(compiler.CompilationFailed, match="as a link"):
        compiler.install({"tritonpy-sample": {"tritonpy_sample/failing.so": b""}}, tmp_path)


def test_a_folder_that_is_no_environment_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(compiler.CompilationFailed, match="is not a virtual environment"):
        compiler.install({}, tmp_path)


def test_a_missing_compiler_and_missing_headers_are_named(tmp_path: Path) -> None:
    with pytest.raises(compiler.CompilationFailed, match="no C compiler 'no-gcc': apt install"):
        compiler.check_compiler("no-gcc -pthread", str(tmp_path))
    with pytest.raises(compiler.CompilationFailed, match=r"has no Python\.h: apt install"):
        compiler.check_compiler(sys.executable, str(tmp_path))


def test_a_missing_compiler_skips_the_compiled_tier_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CC", "no-gcc")
    assert "no C compiler 'no-gcc': apt install gcc" in run.missing_compiler()
