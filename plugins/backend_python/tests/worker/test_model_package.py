from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tritonpy_worker.model_package import ModelPackage

MODEL = """
import helper, inner.deep, os.path
import inner.x.y as aliased
from inner.deep import NAME
from inner import other
from . import helper as relative
from .inner import deep
from above import ABOVE

def later():
    import lazy
    return lazy.NAME
"""


def write(folder: Path, name: str) -> None:
    version = folder / "1"
    (version / "inner" / "x").mkdir(parents=True)
    for path, text in {
        "model.py": MODEL,
        "helper.py": "import lazy\nfrom lazy import NAME\n",
        "lazy.py": f"NAME = {name!r}\n",
        "inner/__init__.py": "",
        "inner/deep.py": "import helper\nNAME = helper.NAME\n",
        "inner/other.py": f"NAME = {name!r}\n",
        "inner/x/y.py": "from ...lazy import NAME\n",
    }.items():
        (version / path).write_text(text)
    (folder / "above.py").write_text(f"ABOVE = {name!r}\n")


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    packages: list[ModelPackage] = []

    def make(name: str, folder: Path | None = None, **extra: Any) -> ModelPackage:
        folder = folder or tmp_path / name
        packages.append(ModelPackage(f"package_{name}", [str(folder / "1"), str(folder)], extra))
        return packages[-1]

    yield make
    for each in packages:
        each.close()


def names(module: Any) -> set[str]:
    return {
        module.helper.NAME, module.inner.deep.NAME, module.aliased.NAME, module.NAME, module.other.NAME,
        module.deep.NAME, module.ABOVE, module.later(),
    }  # fmt: skip


def test_modules_of_different_models_do_not_collide(tmp_path: Path, package: Any) -> None:
    for name in "ab":
        write(tmp_path / name, name)
    first, second = (package(name).load("model") for name in "ab")
    assert (names(first), names(second)) == ({"a"}, {"b"})
    assert first.relative is first.helper


def test_the_process_is_not_changed(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "a")
    path, modules = list(sys.path), set(sys.modules)
    made = package("a")
    made.load("model")
    assert sys.path == path
    assert {name.partition(".")[0] for name in set(sys.modules) - modules} == {"package_a"}
    made.close()
    assert set(sys.modules) == modules
    assert not {str(tmp_path / "a"), str(tmp_path / "a" / "1")} & set(sys.path_importer_cache)


def test_a_new_package_reads_the_files_again(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "old")
    old = package("old", tmp_path / "a").load("model")
    for file in (tmp_path / "a").rglob("*.py"):
        file.write_text(file.read_text().replace("'old'", "'renewed'"))
    new = package("new", tmp_path / "a").load("model")
    assert (names(old), names(new)) == ({"old"}, {"renewed"})


def test_installed_packages_have_priority(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "a")
    (tmp_path / "a" / "1" / "json.py").write_text(
        "raise AssertionError('a file of the model hid a module of the library')"
    )
    (tmp_path / "a" / "1" / "model.py").write_text("import json\n")
    assert package("a").load("model").json is sys.modules["json"]


def test_files_next_to_the_model_are_found_in_any_thread(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "a")
    later = package("a").load("model").later
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(later()))
    thread.start()
    thread.join()
    assert found == ["a"]


def test_a_missing_module_is_named(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "a")
    (tmp_path / "a" / "1" / "model.py").write_text("import nowhere_at_all\n")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'nowhere_at_all'$"):
        package("a").load("model")


def test_the_code_has_its_own_builtins(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "a")
    (tmp_path / "a" / "1" / "model.py").write_text("import helper\nVALUE = own\n")
    (tmp_path / "a" / "1" / "helper.py").write_text("VALUE = own + 1\nimport json\n")
    module = package("a", own=7).load("model")
    assert (module.VALUE, module.helper.VALUE) == (7, 8)
    assert "own" not in vars(module.helper.json)["__builtins__"]


def test_imports_by_string_need_the_full_name(tmp_path: Path, package: Any) -> None:
    write(tmp_path / "a", "a")
    (tmp_path / "a" / "1" / "model.py").write_text(
        "import importlib\nfound = importlib.import_module('.lazy', __package__)\n"
    )
    assert package("a").load("model").found.NAME == "a"
