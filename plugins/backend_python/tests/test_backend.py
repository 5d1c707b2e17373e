"""Python models in a server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tritonpy_testing import InferenceServerException, InferInput, InProcessClient

from .serving import ONE_IN_ONE_OUT, model_py, query, served, wait_for, workers, write_model


def test_a_model_runs_in_its_own_process(tmp_path: Path) -> None:
    write_model(tmp_path, "double")
    with served(tmp_path) as server:
        assert query(server, "double", (1, 2, 3)).tolist() == [[2, 4, 6]]
        assert len(workers()) == 1


def test_a_model_completes_its_own_configuration(tmp_path: Path) -> None:
    methods = """
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_INT64", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_INT64", "dims": [-1]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", -r.inputs()[0].as_numpy())]) for r in requests]
    """
    write_model(tmp_path, "complete", methods, config=None)
    with served(tmp_path) as server:
        config = server.engine.model_config("complete")
        assert (config.max_batch_size, config.HasField("dynamic_batching")) == (4, True)
        assert query(server, "complete", (5,)).tolist() == [[-5]]


def test_output_of_auto_complete_config_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    methods = """
    @staticmethod
    def auto_complete_config(config):
        print("completing now")
        os.write(1, b"from below\\n")
        return config

    def execute(self, requests):
        return []
    """
    write_model(tmp_path, "talker", methods)
    with caplog.at_level("INFO"), served(tmp_path):
        assert "completing now" in caplog.text
        wait_for(lambda: "from below" in caplog.text)  # it arrives through a separate pipe


def test_a_contradictory_completion_fails_the_load_with_its_text(tmp_path: Path) -> None:
    methods = """
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(2)
        return config
    """
    write_model(tmp_path, "wrong", methods)
    with served(tmp_path) as server:
        reason = server.engine.repository_index()[0].reason
        assert "configuration specified max_batch_size 8" in reason
        assert "auto_complete_config" in reason


def test_an_invalid_completion_is_rejected_with_every_problem(tmp_path: Path) -> None:
    methods = """
    @staticmethod
    def auto_complete_config(config):
        config.as_dict()["max_batch_size"] = "many"
        config.as_dict()["inputs"] = []
        return config
    """
    write_model(tmp_path, "wrong", methods)
    with served(tmp_path) as server:
        reason = server.engine.repository_index()[0].reason
        assert "max_batch_size" in reason
        assert "inputs" in reason


def test_several_instances_are_forked_from_one_import(tmp_path: Path) -> None:
    (tmp_path / "imports").write_text("")
    methods = """
    def initialize(self, args):
        self.pid = os.getpid()

    def execute(self, requests):
        time.sleep(0.05)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 1), self.pid))]) for r in requests]
    """
    folder = write_model(
        tmp_path, "many", methods, ONE_IN_ONE_OUT + "instance_group { count: 3 kind: KIND_CPU }"
    )
    source = folder / "1" / "model.py"
    source.write_text(
        f"open({str(tmp_path / 'imports')!r}, 'a').write('imported\\n')\n" + source.read_text()
    )
    with served(tmp_path) as server:
        client = InProcessClient(server)
        tensor = InferInput("IN", [1, 1], "INT64").set_data_from_numpy(np.zeros((1, 1), np.int64))
        calls = [client.async_infer("many", [tensor]) for _ in range(12)]
        pids = {int(call.get_result().as_numpy("OUT")[0, 0]) for call in calls}
        assert len(pids) == 3
        assert (tmp_path / "imports").read_text() == "imported\n"


def test_a_model_whose_import_starts_threads_is_not_forked(tmp_path: Path) -> None:
    methods = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 1), os.getpid()))]) for r in requests]
    """
    folder = write_model(
        tmp_path, "threads", methods, ONE_IN_ONE_OUT + "instance_group { count: 2 kind: KIND_CPU }"
    )
    source = folder / "1" / "model.py"
    source.write_text(
        source.read_text()
        + "\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
    )
    with served(tmp_path) as server:
        assert query(server, "threads", (0,)).size == 1
        assert len(workers()) == 2


def test_instances_have_different_random_numbers(tmp_path: Path) -> None:
    methods = """
    def initialize(self, args):
        self.drawn = np.random.randint(1 << 62)

    def execute(self, requests):
        time.sleep(0.05)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 1), self.drawn))]) for r in requests]
    """
    write_model(
        tmp_path, "random", methods, ONE_IN_ONE_OUT + "instance_group { count: 2 kind: KIND_CPU }"
    )
    with served(tmp_path) as server:
        client = InProcessClient(server)
        tensor = InferInput("IN", [1, 1], "INT64").set_data_from_numpy(np.zeros((1, 1), np.int64))
        calls = [client.async_infer("random", [tensor]) for _ in range(8)]
        assert len({int(call.get_result().as_numpy("OUT")[0, 0]) for call in calls}) == 2


def test_a_failed_import_fails_the_load_with_its_traceback(tmp_path: Path) -> None:
    folder = write_model(tmp_path, "broken")
    (folder / "1" / "model.py").write_text(
        "def helper():\n    raise ValueError('not today')\n\nhelper()\n"
    )
    with served(tmp_path) as server:
        reason = server.engine.repository_index()[0].reason
        assert "ValueError: not today\n\nAt:\n" in reason
        assert "model.py(2): helper" in reason
        with pytest.raises(InferenceServerException):
            query(server, "broken")


def test_an_interpreter_that_exits_during_the_import_fails_the_load_with_its_output(
    tmp_path: Path,
) -> None:
    folder = write_model(tmp_path, "leaves")
    (folder / "1" / "model.py").write_text(
        "import os, sys\nos.write(2, b'goodbye\\n')\nos._exit(7)\n"
    )
    with served(tmp_path) as server:
        reason = server.engine.repository_index()[0].reason
        assert "Stub process 'leaves' is not healthy" in reason
        assert "status 7" in reason
        assert "goodbye" in reason


def test_a_model_py_in_a_backend_folder_serves_models_without_one(tmp_path: Path) -> None:
    backend = tmp_path / "backends" / "shifter"
    backend.mkdir(parents=True)
    (backend / "model.py").write_text(
        model_py("""
        def initialize(self, args):
            with open(os.path.join(args["model_repository"], args["model_version"], "by.txt")) as file:
                self.by = int(file.read())

        def execute(self, requests):
            return [
                pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy() + self.by)]) for r in requests
            ]
        """)
    )
    folder = tmp_path / "models" / "shifted"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "by.txt").write_text("40")
    (folder / "config.pbtxt").write_text(ONE_IN_ONE_OUT.replace('"python"', '"shifter"'))
    with served(tmp_path / "models", backend_directory=str(tmp_path / "backends")) as server:
        assert query(server, "shifted", (2,)).tolist() == [[42]]


def test_instances_share_arrays_that_one_of_them_built(tmp_path: Path) -> None:
    (tmp_path / "built").write_text("")
    methods = f"""
    def initialize(self, args):
        def build():
            with open({str(tmp_path / "built")!r}, "a") as file:
                file.write("built\\n")
            return {{"weights": np.arange(1 << 20)}}
        self.weights = pb_utils.shared_arrays("all", build)["weights"]

    def execute(self, requests):
        time.sleep(0.05)
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[self.weights[-1], os.getpid()]]))]) for r in requests
        ]
    """
    write_model(
        tmp_path / "models",
        "sharing",
        methods,
        ONE_IN_ONE_OUT + "instance_group { count: 3 kind: KIND_CPU }",
    )
    with served(tmp_path / "models") as server:
        client = InProcessClient(server)
        tensor = InferInput("IN", [1, 1], "INT64").set_data_from_numpy(np.zeros((1, 1), np.int64))
        calls = [client.async_infer("sharing", [tensor]) for _ in range(12)]
        answers = [call.get_result().as_numpy("OUT")[0].tolist() for call in calls]
        assert {weight for weight, _ in answers} == {(1 << 20) - 1}
        assert len({pid for _, pid in answers}) == 3
    assert (tmp_path / "built").read_text() == "built\n"


def test_output_is_logged_with_the_model_and_the_request_id(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    methods = """
    def execute(self, requests):
        print("working")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
    """
    write_model(tmp_path, "talker", methods)
    with caplog.at_level("INFO"), served(tmp_path) as server:
        tensor = InferInput("IN", [1, 1], "INT64").set_data_from_numpy(np.zeros((1, 1), np.int64))
        InProcessClient(server).infer("talker", [tensor], request_id="seven")
        (record,) = [record for record in caplog.records if record.getMessage() == "working"]
    assert (vars(record)["model"], vars(record)["request_id"]) == ("talker", "seven")
