"""Models that hang while they load. Their processes are killed when the load is cancelled."""

from __future__ import annotations

import threading

import pytest

from tritonpy_testing import InferenceServerException, InProcessClient

from .serving import DOUBLE, ONE_IN_ONE_OUT, served, wait_for, workers, write_model

HANGS = "def initialize(self, args):\n    time.sleep(600)\n"
COMPLETES = "@staticmethod\ndef auto_complete_config(config):\n    time.sleep(600)\n"
TWO = ONE_IN_ONE_OUT + "instance_group [{ count: 2 }]"


def begin_load(server, name):
    """Start a load in a thread. Return the thread and a list for its error."""
    errors = []

    def load():
        try:
            InProcessClient(server).load_model(name)
        except InferenceServerException as error:
            errors.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    return thread, errors


@pytest.mark.parametrize(
    ("methods", "config"), [(HANGS, ONE_IN_ONE_OUT), (HANGS, TWO), (COMPLETES, 'backend: "python"')]
)
def test_an_unload_kills_the_process_and_the_load_ends(tmp_path, methods, config):
    write_model(tmp_path, "m", methods + DOUBLE, config)
    with served(tmp_path, control={"mode": "explicit"}) as server:
        thread, errors = begin_load(server, "m")
        wait_for(workers)
        InProcessClient(server).unload_model("m")
        thread.join(10)
        assert "failed to load 'm', no version is available" in str(errors[0])
        wait_for(lambda: not workers())
        assert InProcessClient(server).get_model_repository_index()[0]["state"] == "UNAVAILABLE"


def test_a_hanging_update_of_instances_is_killed(tmp_path):
    hangs_if_second = f"def initialize(self, args):\n    time.sleep(600 if os.path.exists({str(tmp_path / 'hang')!r}) else 0)\n"
    folder = write_model(tmp_path / "models", "m", hangs_if_second + DOUBLE)
    with served(tmp_path / "models", control={"mode": "explicit"}) as server:
        InProcessClient(server).load_model("m")
        (tmp_path / "hang").touch()
        (folder / "config.pbtxt").write_text(TWO)
        thread, _ = begin_load(server, "m")
        wait_for(lambda: len(workers()) == 2)
        InProcessClient(server).unload_model("m")
        thread.join(10)
        wait_for(lambda: not workers())


def test_a_hanging_import_is_killed(tmp_path):
    folder = write_model(tmp_path, "m", DOUBLE, 'backend: "python"')
    (folder / "1" / "model.py").write_text("import time\ntime.sleep(600)\n")
    with served(tmp_path, control={"mode": "explicit"}) as server:
        thread, _ = begin_load(server, "m")
        wait_for(workers)
        InProcessClient(server).unload_model("m")
        thread.join(10)
        wait_for(lambda: not workers())


def test_a_load_that_exceeds_the_timeout_is_killed_and_its_thread_ends(tmp_path):
    write_model(tmp_path, "m", HANGS + DOUBLE)
    with served(tmp_path, control={"mode": "explicit", "load_timeout_s": 0.5}) as server:
        with pytest.raises(InferenceServerException) as failed:
            InProcessClient(server).load_model("m")
        assert "the load took longer than the limit of 0.5 s (--model-load-timeout-secs)" in str(
            failed.value
        )
        assert "cannot be stopped" not in str(failed.value)
        wait_for(lambda: not workers())


def test_the_end_of_the_server_does_not_wait_for_a_hanging_load(tmp_path):
    write_model(tmp_path, "m", HANGS + DOUBLE)
    with served(tmp_path, control={"mode": "explicit"}) as server:
        thread, errors = begin_load(server, "m")
        wait_for(workers)
    thread.join(10)
    assert "Server exiting" in str(errors[0])
    assert not workers()
