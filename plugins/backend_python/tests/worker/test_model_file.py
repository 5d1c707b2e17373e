from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .peer import Peer, fp32

Start = Callable[..., Peer]
SHOW = """
import triton_python_backend_utils as pb_utils
{imports}

class TritonPythonModel:
    def initialize(self, args):
        print({expression})
"""


def printed_text(peer: Peer) -> str:
    peer.started()
    return peer.logs[0]["message"]


def test_a_model_imports_files_next_to_it(
    start_worker: Start, write_model: Callable[..., Path]
) -> None:
    file = write_model(
        SHOW.format(
            imports="import helper\nfrom . import helper as relative\nfrom .package.deep import DEEP",
            expression="helper.NAME, relative.NAME, DEEP, __name__",
        ),
        whole=True,
    )
    (file.parent / "helper.py").write_text("NAME = __name__\n")
    (file.parent / "package").mkdir()
    (file.parent / "package" / "deep.py").write_text("from ..helper import NAME\nDEEP = NAME\n")
    assert printed_text(start_worker(model_file=file)) == "helper 1.helper 1.helper 1.model"


def test_the_models_folder_is_on_the_path(
    start_worker: Start, write_model: Callable[..., Path]
) -> None:
    file = write_model(SHOW.format(imports="import shared", expression="shared.VALUE"), whole=True)
    (file.parent.parent / "shared.py").write_text("VALUE = 7\n")
    assert printed_text(start_worker(model_file=file)) == "7"


def test_another_name_of_the_file_is_the_modules_name(
    start_worker: Start, write_model: Callable[..., Path]
) -> None:
    file = write_model(SHOW.format(imports="", expression="__name__"), whole=True, version="12")
    other = file.with_name("other.py")
    file.rename(other)
    assert printed_text(start_worker(model_file=other)) == "12.other"


def test_the_folder_of_the_version_is_the_model_dir(
    start_worker: Start, write_model: Callable[..., Path]
) -> None:
    file = write_model(SHOW.format(imports="", expression="pb_utils.get_model_dir()"), whole=True)
    assert printed_text(start_worker(model_file=file)) == str(file.parent)


def test_a_python_based_backend_runs_its_own_file(
    start_worker: Start, write_model: Callable[..., Path], tmp_path: Path
) -> None:
    write_model(
        SHOW.format(
            imports="import engine", expression="__name__, engine.NAME, pb_utils.get_model_dir()"
        ),
        whole=True,
        name="backends",
        version="mine",
    )
    backend = tmp_path / "backends" / "mine"
    (backend / "engine.py").write_text("NAME = 'engine'\n")
    version = tmp_path / "repository" / "m" / "1"
    version.mkdir(parents=True)
    peer = start_worker(model_file=version / "model.bin", backend_directory=str(backend))
    assert printed_text(peer) == f"model engine {version}"


@pytest.mark.parametrize(
    ("code", "beginning"),
    [
        ("x = 1\n", "AttributeError: module '1.model' has no attribute 'TritonPythonModel'"),
        (
            "import nowhere\n",
            "ModuleNotFoundError: No module named 'nowhere'\n\nAt:\n  FILE(1): <module>\n  <frozen importlib._bootstrap>(",
        ),
        ("1 / 0\n", "ZeroDivisionError: division by zero\n\nAt:\n  FILE(1): <module>\n"),
        (
            "class TritonPythonModel:\n    def __init__(self):\n        1 / 0\n",
            "ZeroDivisionError: division by zero\n\nAt:\n  FILE(3): __init__\n",
        ),
        ("def f(:\n", "SyntaxError: "),
    ],
)
def test_an_unusable_file_is_an_error(
    start_worker: Start, write_model: Callable[..., Path], code: str, beginning: str
) -> None:
    file = write_model(code, whole=True)
    text = start_worker(model_file=file).failed()
    assert text.replace(str(file), "FILE").startswith(beginning)
    assert "tritonpy" not in text


def test_a_missing_file_is_named(start_worker: Start, tmp_path: Path) -> None:
    file = tmp_path / "m" / "1" / "model.py"
    assert start_worker(model_file=file).failed() == f"Python model file not found in '{file}'"


def test_a_file_of_another_type_is_rejected(start_worker: Start, tmp_path: Path) -> None:
    text = start_worker(model_file=tmp_path / "m" / "1" / "model.txt").failed()
    assert text == "Model name must end with '.py'. Model name is \"model.txt\"."


def test_a_model_without_execute_loads_and_fails_its_requests(worker: Start) -> None:
    peer = worker("def initialize(self, args): ...")
    (answer,) = peer.execute([fp32("A", 1)])
    assert "does not implement `execute` method." in answer.message


def test_the_users_environment_is_kept(worker: Start, tmp_path: Path) -> None:
    (tmp_path / "found.py").write_text("PLACE = 'on PYTHONPATH'\n")
    peer = worker(
        """
        def initialize(self, args):
            import found
            print(found.PLACE, os.environ["MINE"], sys.flags.no_user_site, sys.flags.isolated, sys.argv)
        """,
        env={"PYTHONPATH": str(tmp_path), "MINE": "yes"},
    )
    assert peer.logs[0]["message"] == "on PYTHONPATH yes 0 0 ['']"
