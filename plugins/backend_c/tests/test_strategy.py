from __future__ import annotations

import gc
import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tritonpy_backend_c
from tritonpy import (
    Backend,
    Batch,
    CallbackSink,
    InferRequest,
    InferResponse,
    InvalidArgument,
    RunningServer,
    Tensor,
    hookimpl,
    running_server,
)
from tritonpy.scheduling import Pending, Run
from tritonpy_backend_c.strategy import BatchLibraryPolicy
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_testing import BatchPolicyContract, ModelRepository, model_config

HELD = "TRITONSERVER_DELAY_SCHEDULER"
MODEL = """
    name: "m" backend: "recording" max_batch_size: 8 dynamic_batching { }
    input { name: "IN" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
MOST = 'parameters { key: "MOST" value { string_value: "10" } }'


def path_parameter(path: object) -> str:
    return f'parameters {{ key: "TRITON_BATCH_STRATEGY_PATH" value {{ string_value: "{path}" }} }}'


class RecordingBackend(Backend):
    """Records the values of each batch."""

    batches: ClassVar[list[list[int]]] = []

    def execute(self, batch: Batch) -> None:
        values = [int(request.inputs["IN"].numpy()[0, 0]) for request in batch.requests]
        self.batches.append(values)
        super().execute(batch)

    def infer(self, inputs: Any) -> Any:
        return {"OUT": inputs["IN"]}


class RecordingPlugin:
    @hookimpl
    def tritonpy_backends(self) -> dict[str, type[Backend]]:
        return {"recording": RecordingBackend}


@pytest.fixture
def batches() -> list[list[int]]:
    RecordingBackend.batches.clear()
    return RecordingBackend.batches


def serve(repository: ModelRepository, **settings: Any) -> Any:
    return running_server(
        {"repositories": [{"url": str(repository.path)}], "exit_on_error": False}
        | {"frontends": {"http": False, "grpc": False, "metrics": False}}
        | settings,
        [RecordingPlugin()],
    )


def request(value: int, sink: Any = None) -> InferRequest:
    tensor = Tensor.from_numpy("IN", np.full((1, 1), value, np.int32))
    return InferRequest("m", {"IN": tensor}, sink or CallbackSink(lambda *_: None))


def infer(server: RunningServer, values: list[int]) -> list[InferResponse]:
    """Send requests in this order and return their responses, in any order."""
    responses: list[InferResponse] = []
    done = threading.Event()

    def take(_request: InferRequest, response: InferResponse) -> None:
        responses.append(response)
        if len(responses) == len(values):
            done.set()

    for value in values:
        server.engine.infer(request(value, CallbackSink(take)))
    assert done.wait(60)
    return responses


@pytest.fixture
def served(
    libraries: Path, model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningServer]:
    monkeypatch.setenv(HELD, "8")
    library = (libraries / "strategy.so").read_bytes()
    model_repository.add("m", MODEL + MOST, {1: {"batchstrategy.so": library}})
    with serve(model_repository) as server:
        yield server


def test_a_library_in_the_version_s_folder_limits_the_batches(
    served: RunningServer, batches: list[list[int]]
) -> None:
    # 12 is refused as the first of a batch, and runs alone
    assert len(infer(served, [4, 4, 4, 6, 12, 1, 2, 3])) == 8
    assert batches == [[4, 4], [4, 6], [12], [1, 2, 3]]


def test_an_error_of_the_library_is_logged_and_the_request_runs_alone(
    served: RunningServer, batches: list[list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    responses = infer(served, [1, -1, 1, 1, 1, 1, 1, 1])
    assert all(response.error is None for response in responses)
    assert batches == [[1], [-1], [1] * 6]
    assert "Custom batching include function failed for model m: IN is below 0" in caplog.text


class LogWatch(logging.Handler):
    """Waits for lines of the library, which another thread logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self.lines.append(record.getMessage())
            self._changed.notify_all()

    def wait_for(self, line: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: line in self.lines, 30), self.lines


@pytest.fixture
def log_watch() -> Iterator[LogWatch]:
    watch, log = LogWatch(), logging.getLogger("tritonpy.backend")
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(watch)
    yield watch
    log.removeHandler(watch)
    log.setLevel(level)


def test_batches_end_when_they_are_cut_and_the_batcher_with_its_policy(
    libraries: Path, log_watch: LogWatch
) -> None:
    gc.collect()  # policies of other tests end before
    policy = make_policy(libraries / "strategy.so")
    waiting = [request(value) for value in (4, 5, 6)]
    assert policy.plan(pending(waiting), 1) == Run(2)
    policy.cut(pending(waiting), 2, 1)
    assert policy.plan(pending(waiting[2:]), 1) == Run(1)
    log_watch.wait_for("a batch of 9")
    del policy
    gc.collect()
    log_watch.wait_for("the batcher ends")
    lines = log_watch.lines
    assert lines[lines.index("strategy of m 3: at most 10") :] == [
        "strategy of m 3: at most 10", "a batch of 9", "a batch of 6", "the batcher ends",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["relative", "absolute", "model folder", "backend folder"])
def test_the_library_is_found_where_triton_looks(
    libraries: Path,
    model_repository: ModelRepository,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    batches: list[list[int]],
    kind: str,
) -> None:
    monkeypatch.setenv(HELD, "2")
    folder = model_repository.path / "m"
    target = {
        "relative": folder / "rules" / "x.so",
        "absolute": folder / "1" / "x.so",
        "model folder": folder / "batchstrategy.so",
        "backend folder": tmp_path / "folders" / "other" / "batchstrategy.so",
    }[kind]
    more = {"relative": path_parameter("rules/x.so"), "absolute": path_parameter(target)}
    config = MODEL + MOST + more.get(kind, "")
    if kind == "backend folder":
        config = config.replace('"recording"', '"other"')
        target.parent.mkdir(parents=True)
        (target.parent / "model.py").write_text(
            "import triton_python_backend_utils as pb_utils\n"
            "class TritonPythonModel:\n"
            "    def execute(self, requests):\n"
            "        total = sum([r.inputs()[0].as_numpy()[0, 0] for r in requests])\n"
            "        out = pb_utils.Tensor('OUT', requests[0].inputs()[0].as_numpy() * 0 + total)\n"
            "        return [pb_utils.InferenceResponse([out]) for _ in requests]\n"
        )
    model_repository.add("m", config)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(libraries / "strategy.so", target)
    with serve(model_repository, backend_directory=str(tmp_path / "folders")) as server:
        responses = infer(server, [7, 7])
    if kind == "backend folder":
        totals = [int(each.outputs[0].numpy()[0, 0]) for each in responses]
        assert totals == [7, 7], [response.error for response in responses]
    else:
        assert batches == [[7], [7]]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (MODEL, "MOST is missing"),
        (MODEL + MOST + path_parameter("../strategy.so"), "escapes model repository"),
        (MODEL + MOST + path_parameter("/etc/passwd"), "escapes model repository"),
        (MODEL + MOST + path_parameter("no.so"), "Batching library path not found: no.so"),
        (MODEL + MOST + path_parameter("config.pbtxt"), "config.pbtxt' is no shared library"),
        (
            MODEL.replace("dynamic_batching", "sequence_batching") + path_parameter("x.so"),
            "cannot be specified with sequence batcher",
        ),
    ],
)
def test_a_model_with_a_bad_library_is_not_loaded(
    libraries: Path, model_repository: ModelRepository, config: str, reason: str
) -> None:
    library = (libraries / "strategy.so").read_bytes()
    model_repository.add("m", config, {1: {"batchstrategy.so": library}})
    with serve(model_repository) as server:
        (model,) = server.engine.repository_index()
        assert reason in model.reason


def test_a_library_without_all_functions_is_refused(
    libraries: Path, model_repository: ModelRepository
) -> None:
    library = (libraries / "cache.so").read_bytes()
    model_repository.add("m", MODEL, {1: {"batchstrategy.so": library}})
    with serve(model_repository) as server:
        (model,) = server.engine.repository_index()
        expected = "batchstrategy.so does not define all required custom batching functions"
        assert expected in model.reason


def test_a_policy_that_the_configuration_names_has_priority(
    libraries: Path, model_repository: ModelRepository, batches: list[list[int]]
) -> None:
    own = 'parameters { key: "batch_policy" value { string_value: "preferred" } }'
    library = (libraries / "strategy.so").read_bytes()
    model_repository.add("m", MODEL + own, {1: {"batchstrategy.so": library}})
    with serve(model_repository) as server:
        infer(server, [20])
    assert batches == [[20]]


class TestPolicy(BatchPolicyContract):
    plugin = tritonpy_backend_c
    plugin_class = BatchLibraryPolicy
    name = "c"

    @pytest.fixture(autouse=True)
    def _library(self, libraries: Path) -> None:
        library = libraries / "strategy.so"
        self.config = MODEL + MOST + path_parameter(library)  # type: ignore[misc]


def make_policy(library: Path, config: str = MODEL + MOST) -> BatchLibraryPolicy:
    text = config + path_parameter(library)
    parsed = model_config(text)
    return BatchLibraryPolicy(parsed, 3, library.parent, PreferredPolicy(parsed))


def pending(requests: list[InferRequest]) -> Pending:
    return Pending(requests, [1] * len(requests), len(requests), 0)


def test_the_library_decides_again_after_a_request_was_removed(libraries: Path) -> None:
    policy = make_policy(libraries / "strategy.so")
    first, second, third, fourth = (request(value) for value in (5, 5, 4, 1))
    assert policy.plan(pending([first, second, third]), 1) == Run(2)
    assert policy.plan(pending([first, second, third]), 1) == Run(2)
    assert policy.plan(pending([first, third]), 1) == Run(2)
    assert policy.plan(pending([first, third, fourth]), 1) == Run(3)
    assert policy.plan(pending([third]), 1) == Run(1)
    policy.cut(pending([third]), 1, 1)
    assert policy.plan(pending([second, first, fourth]), 1) == Run(2)


def test_a_refused_request_may_leave_the_queue(libraries: Path) -> None:
    policy = make_policy(libraries / "strategy.so")
    first, large, small = (request(value) for value in (5, 9, 1))
    assert policy.plan(pending([first, large, small]), 1) == Run(1)
    assert policy.plan(pending([first, small]), 1) == Run(2)


def test_an_input_in_the_memory_of_a_device_is_not_batched(
    libraries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = make_policy(libraries / "strategy.so")
    on_device = request(1)
    on_device.inputs["IN"] = Tensor("IN", "INT32", (1, 1), object())  # type: ignore[index]
    assert policy.plan(pending([request(1), on_device, request(2)]), 1) == Run(1)
    assert "a request cannot be batched: input 'IN' is in the memory of a device" in caplog.text


def test_an_error_of_the_batcher_has_its_text(libraries: Path) -> None:
    with pytest.raises(InvalidArgument, match="MOST is missing"):
        make_policy(libraries / "strategy.so", MODEL)
