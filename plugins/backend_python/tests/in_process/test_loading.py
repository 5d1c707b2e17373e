"""Loading and unloading of a model's code in the server's process."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tritonpy import InvalidArgument

from ..serving import ONE_IN_ONE_OUT, wait_for, write_model
from ..serving import query as ask_numbers
from .modes import PLAN, both, isolation, query, serving, write_planned

LOCAL = isolation("thread")
NUMBERED = """
def execute(self, requests):
    import helper
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 1), helper.NUMBER))]) for _ in requests]
"""


def write_numbered(
    repository: Path, name: str, number: int, config: str = ONE_IN_ONE_OUT + LOCAL
) -> None:
    folder = write_model(repository, name, NUMBERED, config)
    (folder / "1" / "helper.py").write_text(f"NUMBER = {number}\n")


def packages() -> set[str]:
    return {name for name in tuple(sys.modules) if name.startswith("tritonpy_model_")}


def test_modules_of_different_models_do_not_collide_and_are_removed(tmp_path: Path) -> None:
    path, threads = list(sys.path), set(threading.enumerate())
    for number in range(3):
        write_numbered(tmp_path, f"m{number}", number)
    with serving(tmp_path) as server:
        assert [ask_numbers(server, f"m{number}").tolist() for number in range(3)] == [
            [[0]],
            [[1]],
            [[2]],
        ]
        assert packages()
    assert packages() == set()
    assert sys.path == path
    wait_for(lambda: set(threading.enumerate()) <= threads)


def test_a_reload_reads_the_files_again(tmp_path: Path) -> None:
    write_numbered(tmp_path, "m", 1)
    with serving(tmp_path, control={"mode": "explicit", "load": ["m"]}) as server:
        assert ask_numbers(server, "m").tolist() == [[1]]
        write_numbered(tmp_path, "m", 22)
        server.engine.load_model("m")
        assert ask_numbers(server, "m").tolist() == [[22]]
        server.engine.unload_model("m")
        wait_for(lambda: not packages())


COUNTING = """
counted = []

def execute(self, requests):
    import helper
    helper.COUNTED.append(1)
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 1), len(helper.COUNTED)))]) for _ in requests]
"""


def test_instances_have_their_own_modules(tmp_path: Path) -> None:
    config = ONE_IN_ONE_OUT + LOCAL + "instance_group { count: 2 kind: KIND_CPU }"
    folder = write_model(tmp_path, "m", COUNTING, config)
    (folder / "1" / "helper.py").write_text("COUNTED = []\n")
    with serving(tmp_path) as server:
        assert len({name.partition(".")[0] for name in packages()}) == 2
        counts = [int(ask_numbers(server, "m")[0, 0]) for _ in range(6)]
        assert sum(1 for count in counts if count == 1) <= 2


def test_other_file_names_and_python_based_backends(tmp_path: Path) -> None:
    write_numbered(
        tmp_path / "models", "named", 5, ONE_IN_ONE_OUT + LOCAL + 'default_model_filename: "own.py"'
    )
    version = tmp_path / "models" / "named" / "1"
    (version / "model.py").rename(version / "own.py")
    backend = write_model(tmp_path, "backends", NUMBERED, None)
    (backend / "many").mkdir()
    (backend / "1" / "model.py").rename(backend / "many" / "model.py")
    (backend / "many" / "helper.py").write_text("NUMBER = 6\n")
    for name in ("one", "other"):
        folder = tmp_path / "models" / name
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(ONE_IN_ONE_OUT.replace('"python"', '"many"') + LOCAL)
    with serving(tmp_path / "models", backend_directory=str(backend)) as server:
        assert server.server.failures == {}
        assert [ask_numbers(server, name).tolist() for name in ("named", "one", "other")] == [
            [[5]],
            [[6]],
            [[6]],
        ]


FAILING = {
    "import": ("raise ValueError('no')", ""),
    "initialize": ("", "def initialize(self, args): raise ValueError('no')"),
    "leave": ("", "def initialize(self, args): sys.exit(3)"),
    "complete": ("", "@staticmethod\ndef auto_complete_config(config): raise ValueError('no')"),
    "complete_with_nothing": ("", "@staticmethod\ndef auto_complete_config(config): return None"),
    "complete_too_late": (
        "",
        "@staticmethod\ndef auto_complete_config(config): config.set_max_batch_size(1)\n",
    ),
    "missing": ("import missing_module", ""),
    "syntax": ("def broken(:", ""),
}


@pytest.mark.parametrize("what", FAILING)
def test_load_errors_are_equal_in_both_modes(tmp_path: Path, what: str) -> None:
    first, methods = FAILING[what]
    reasons, before = {}, packages()
    for mode in ("process", "thread"):
        folder = write_model(
            tmp_path / mode / "models", "m", methods or "pass", ONE_IN_ONE_OUT + isolation(mode)
        )
        file = folder / "1" / "model.py"
        file.write_text(f"{first}\n{file.read_text()}")
        with serving(tmp_path / mode / "models") as server:
            reasons[mode] = server.server.failures["m"].message.replace(f"/{mode}/", "/MODE/")
    assert reasons["process"] == reasons["thread"]
    assert packages() == before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path, "m", config=ONE_IN_ONE_OUT + LOCAL)
    (folder / "1" / "model.py").rename(folder / "1" / "other.py")
    with serving(tmp_path) as server:
        assert (
            f"Python model file not found in '{folder}/1/model.py'"
            in server.server.failures["m"].message
        )


def test_configurations_are_completed_in_the_same_way(tmp_path: Path) -> None:
    methods = """
    @staticmethod
    def auto_complete_config(config):
        print("completing")
        assert pb_utils.get_model_dir().endswith("/1")
        config.add_input({"name": "IN", "data_type": "TYPE_INT64", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_INT64", "dims": [-1]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", -r.inputs()[0].as_numpy())]) for r in requests]
    """
    configs = []
    for mode in ("process", "thread"):
        write_model(tmp_path, mode, methods, 'backend: "python"' + isolation(mode))
    with serving(tmp_path) as server:
        for mode in ("process", "thread"):
            config = server.engine.model_config(mode)
            configs.append(str(config).replace(mode, "MODE"))
            assert ask_numbers(server, mode, (5,)).tolist() == [[-5]]
    assert configs[0] == configs[1]


def test_finalize_is_called_and_its_exceptions_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    methods = """
def finalize(self):
    print("cleaning up")
    raise ValueError("not clean")
"""
    write_model(tmp_path, "m", methods, ONE_IN_ONE_OUT + LOCAL)
    with caplog.at_level("INFO"), serving(tmp_path):
        pass
    assert "cleaning up" in caplog.text
    assert "ValueError: not clean\n\nAt:\n" in caplog.text


PARAMETERS = {
    "EXECUTION_ENV_PATH": "/opt/envs/own.tar.gz",
    "PYTHON_VERSION": "3.10",
    "EXECUTION_LIMIT_SECONDS": "5",
    "MEMORY_LIMIT": "2GiB",
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("complete", [True, False])
def test_parameters_that_need_a_process_are_rejected(
    tmp_path: Path, name: str, complete: bool
) -> None:
    parameter = f'parameters {{ key: "{name}" value {{ string_value: "{PARAMETERS[name]}" }} }}'
    write_model(tmp_path, "m", config=ONE_IN_ONE_OUT + LOCAL + parameter)
    with serving(tmp_path, disable_auto_complete=complete) as server:
        assert (
            f"does not support {name}: remove that, or run the model in its own process"
            in server.server.failures["m"].message
        )


@pytest.mark.parametrize("where", [".", "1"])
def test_requirements_are_rejected(tmp_path: Path, where: str) -> None:
    folder = write_model(tmp_path, "m", config=ONE_IN_ONE_OUT + LOCAL)
    (folder / where / "requirements.txt").write_text("numpy\n")
    with serving(tmp_path) as server:
        assert "requirements.txt: remove that" in server.server.failures["m"].message


def test_limits_of_the_backend_are_rejected(tmp_path: Path) -> None:
    write_model(tmp_path, "m", config=ONE_IN_ONE_OUT + LOCAL)
    free = 'parameters { key: "EXECUTION_LIMIT_SECONDS" value { string_value: "0" } }'
    write_model(tmp_path, "free", config=ONE_IN_ONE_OUT + LOCAL + free)
    with serving(tmp_path, backends={"python": {"execution_limit_seconds": 5}}) as server:
        assert set(server.server.failures) == {"m"}
        assert "does not support EXECUTION_LIMIT_SECONDS" in server.server.failures["m"].message


def test_unknown_isolation_values_are_rejected(tmp_path: Path) -> None:
    write_model(tmp_path, "m", config=ONE_IN_ONE_OUT + isolation("fibre"))
    with serving(tmp_path) as server:
        assert isinstance(server.server.failures["m"], InvalidArgument)


def test_instances_share_arrays_as_workers_do(tmp_path: Path) -> None:
    methods = """
def initialize(self, args):
    self.shared = pb_utils.shared_arrays("weights", self.build)

def build(self):
    with open(os.path.join(os.path.dirname(pb_utils.get_model_dir()), "built"), "a") as file:
        file.write("x")
    return {"w": np.arange(4)}

def do_weights(self, request):
    array = self.shared["w"]
    return [array.tolist(), array.flags.writeable]
"""
    with both(tmp_path, methods, PLAN + "instance_group { count: 3 kind: KIND_CPU }") as server:
        for mode in ("m_process", "m_thread"):
            assert query(server, mode, "weights") == [[0, 1, 2, 3], False]
            assert (tmp_path / mode / "built").read_text() == "x"


def test_a_failed_build_is_repeated_by_the_next_instance(tmp_path: Path) -> None:
    methods = """
def initialize(self, args):
    self.failures = []
    for fails in (True, False, True):
        try:
            self.shared = pb_utils.shared_arrays("weights", lambda: self.build(fails))
        except ValueError as error:
            self.failures.append(str(error))

def build(self, fails):
    if fails:
        raise ValueError("no weights")
    return {"w": np.ones(1)}

def do_tell(self, request):
    return self.failures
"""
    with both(tmp_path, methods) as server:
        assert [query(server, mode, "tell") for mode in ("m_process", "m_thread")] == [
            ["no weights"]
        ] * 2


def test_code_that_outlives_its_model_cannot_respond(tmp_path: Path) -> None:
    """A sender in a global variable raises an error after its model is unloaded."""
    kept: Any = []
    sys.modules["kept_for_a_test"] = kept
    methods = """
def do_keep(self, request):
    sys.modules["kept_for_a_test"].append(lambda: pb_utils.InferenceRequest(
        model_name="m", inputs=[pb_utils.Tensor("PLAN", np.array([b"[]"], object))], requested_output_names=["OUT"]
    ).exec())
"""
    try:
        write_planned("m_thread", tmp_path, "m", methods)
        with serving(tmp_path) as server:
            query(server, "m", "keep")
        with pytest.raises(Exception, match="BLS is only supported during the 'execute' function"):
            kept[0]()
    finally:
        del sys.modules["kept_for_a_test"]


def test_request_numbers_of_instances_do_not_collide(tmp_path: Path) -> None:
    """Two instances respond to their own requests, even if these have equal numbers."""
    config = ONE_IN_ONE_OUT + LOCAL + "instance_group { count: 2 kind: KIND_CPU }"
    methods = "def execute(self, requests): return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', requests[0].inputs()[0].as_numpy())])]"
    write_model(tmp_path, "m", methods, config)
    with serving(tmp_path) as server:
        found: list[Any] = []
        threads = [
            threading.Thread(
                target=lambda number=number: found.append(
                    (number, ask_numbers(server, "m", (number,)).tolist())
                )
            )
            for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == [(number, [[number]]) for number in range(20)]
