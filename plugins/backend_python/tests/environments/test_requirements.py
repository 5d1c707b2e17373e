from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_backend_python.environments.digests import Digests
from tritonpy_backend_python.environments.requirements import Requirements, find_requirements


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model" / "1").mkdir(parents=True)
    return tmp_path / "model" / "1"


def find(folder: Path) -> Requirements | None:
    return find_requirements(folder, folder.parent, Digests(folder.parent / "digests"))


def digest(folder: Path, text: str | None = None) -> str:
    if text is not None:
        (folder / "requirements.txt").write_text(text, encoding="utf-8")
    found = find(folder)
    assert found
    return found.digest


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_file_next_to_the_model_has_priority(folder: Path):
    assert find(folder) is None
    write(folder.parent / "requirements.txt", "a")
    above = find(folder)
    assert above
    assert above.folder == folder.parent
    write(folder / "requirements.txt", "b")
    next_to_model = find(folder)
    assert next_to_model
    assert next_to_model.source == str(folder / "requirements.txt")
    assert next_to_model.arguments == ("-r", next_to_model.source)
    assert next_to_model.folder == folder
    assert next_to_model.digest != above.digest


def test_a_folder_of_that_name_is_ignored(folder: Path):
    (folder / "requirements.txt").mkdir()
    assert find(folder) is None


def test_equal_texts_have_equal_digests(folder: Path, tmp_path: Path):
    other = tmp_path / "other" / "2"
    other.mkdir(parents=True)
    assert digest(folder, "a==1\n") == digest(other, "a==1\n") != digest(other, "a==2\n")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("-r other.txt", "1/other.txt"),
        ("-rother.txt", "1/other.txt"),
        ("--requirement other.txt", "1/other.txt"),
        ("--requirement=sub/other.txt", "1/sub/other.txt"),
        ("-c ../constraints.txt  # shared", "constraints.txt"),
        ("--constraint \\\n  constraints.txt", "1/constraints.txt"),
        ("./a-1-py3-none-any.whl", "1/a-1-py3-none-any.whl"),
        ("a-1-py3-none-any.whl", "1/a-1-py3-none-any.whl"),
        ("wheels/a.zip --hash=sha256:00", "1/wheels/a.zip"),
        ("./a.tar.gz ; python_version > '3'", "1/a.tar.gz"),
        ("a @ file://{folder}/my%20wheel.whl", "1/my wheel.whl"),
        ("a[x,y]@ file:{folder}/a.whl", "1/a.whl"),
        (".", "1/setup.py"),
        ("./package", "1/package/setup.py"),
        ("./package[extra]", "1/package/pyproject.toml"),
        ("../package", "package/module.py"),
        ("-e ./package", "1/package/module.py"),
        ("--editable=package[dev]", "1/package/module.py"),
        ("-f wheels", "1/wheels/a-1-py3-none-any.whl"),
        ("--find-links=./wheels", "1/wheels/a-1-py3-none-any.whl"),
    ],
)  # fmt: skip
def test_the_digest_includes_named_files(folder: Path, line: str, named: str):
    write(folder.parent / named, "first")
    first = digest(folder, f"# head\n{line.format(folder=folder)}\n")
    assert digest(folder) == first
    write(folder.parent / named, "second")
    assert digest(folder) != first


@pytest.mark.parametrize(
    "line", ["numpy", "numpy==1.0", "-i https://x/y", "a @ https://x/other.txt", "# -r other.txt"]
)
def test_the_digest_ignores_other_files(folder: Path, line: str):
    write(folder / "other.txt", "first")
    write(folder / "numpy" / "x", "first")
    first = digest(folder, line)
    write(folder / "other.txt", "second")
    write(folder / "numpy" / "x", "second")
    assert digest(folder) == first


def test_included_files_are_relative_to_their_folder_and_packages_to_the_first(folder: Path):
    write(folder / "sub" / "one.txt", "-r two.txt\n./package\n")
    write(folder / "sub" / "two.txt", "first")
    write(folder / "sub" / "package" / "x.py", "first")
    write(folder / "package" / "x.py", "first")
    digests = [digest(folder, "-r sub/one.txt")]
    for named in ("sub/two.txt", "package/x.py"):
        write(folder / named, "second")
        digests.append(digest(folder))
    assert len(set(digests)) == 3
    write(folder / "sub" / "package" / "x.py", "second")
    assert digest(folder) == digests[-1]


def test_files_that_name_each_other_are_read_once(folder: Path):
    write(folder / "other.txt", "-r requirements.txt")
    assert digest(folder, "-r other.txt\n-r other.txt")


def test_missing_files_are_ignored(folder: Path):
    assert digest(folder, "-r missing.txt\n./missing.whl\n-e missing")


def test_the_digest_includes_the_path_of_an_editable_package(folder: Path, tmp_path: Path):
    other = tmp_path / "other" / "1"
    for place in (folder, other):
        write(place / "package" / "x.py", "the same")
    assert digest(folder, "-e ./package") != digest(other, "-e ./package")
    assert digest(folder, "./package") == digest(other, "./package")


def test_any_encoding_is_read(folder: Path):
    (folder / "requirements.txt").write_bytes(b"\xef\xbb\xbf-r other.txt\r\n# caf\xe9\r\n")
    write(folder / "other.txt", "first")
    first = digest(folder)
    write(folder / "other.txt", "second")
    assert digest(folder) != first
