"""A model.py calls other models equally in a worker and in the server's process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tritonpy import InferRequest
from tritonpy_testing import RecordingSink, RunningServer

from ..serving import wait_for
from .modes import (
    DECOUPLED,
    MODES,
    PLAN,
    planned,
    query,
    send,
    serving,
    traced,
    values_of,
    write_in,
    write_planned,
)

CALLER = """
def initialize(self, args):
    try:
        self.request("echo", "x").exec()
    except pb_utils.TritonModelException as error:
        self.early = str(error)

def request(self, model, *plan, names=("OUT",), **more):
    given = pb_utils.Tensor("PLAN", np.array([json.dumps(plan).encode()], object))
    return pb_utils.InferenceRequest(model_name=model, inputs=[given], requested_output_names=list(names), **more)

def values_of(self, response):
    if response.has_error():
        return [int(response.error().code()), response.error().message()]
    return [json.loads(tensor.as_numpy()[0]) for tensor in response.output_tensors()]

def do_early(self, request):
    return self.early

def do_call(self, request, model, *plan):
    return self.values_of(self.request(model, *plan).exec())

def do_details(self, request):
    made = self.request(
        "echo", "details", request_id="own", correlation_id=5, flags=1, timeout=7_000_000, parameters={"a": 1}, trace=request.trace()
    )
    return self.values_of(made.exec())

def do_stream(self, request, model, *plan):
    return [self.values_of(response) for response in self.request(model, *plan).exec(decoupled=True)]

def do_stream_twice(self, request):
    stream = self.request("repeat", 3).exec(decoupled=True)
    return [[self.values_of(response) for response in stream] for _ in range(2)]

def do_cancel(self, request):
    stream = self.request("cancellable").exec(decoupled=True)
    first = self.values_of(next(stream))
    stream.cancel()
    return [first, [self.values_of(response) for response in stream]]

def do_abandon(self, request):
    next(self.request("repeat", 1000).exec(decoupled=True))

def do_version(self, request, version):
    return self.values_of(self.request("echo", "x", model_version=version).exec())

def do_output(self, request, *names):
    return self.values_of(self.request("echo", "x", names=names).exec())

def do_twice(self, request):
    made = self.request("echo", "x")
    given = made.inputs()
    return self.values_of(pb_utils.InferenceRequest(model_name="echo", inputs=given + given, requested_output_names=["OUT"]).exec())

def do_threads(self, request):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda number: self.values_of(self.request("echo", number).exec()), range(20)))

def do_self(self, request, name):
    return self.values_of(self.request(name, "early").exec())

def do_in_place(self, request):
    array = np.array([b'["before"]'], object)
    made = pb_utils.InferenceRequest(
        model_name="echo", inputs=[pb_utils.Tensor("PLAN", array)], requested_output_names=["OUT"]
    )
    return self.values_of(made.exec())
"""
ASYNC = """
async def execute(self, requests):
    return [self.answer(await getattr(self, "do_" + name)(*arguments)) for name, *arguments in map(self.plan, requests)]

def request(self, model, *plan):
    given = pb_utils.Tensor("PLAN", np.array([json.dumps(plan).encode()], object))
    return pb_utils.InferenceRequest(model_name=model, inputs=[given], requested_output_names=["OUT"])

def values_of(self, response):
    return response.error().message() if response.has_error() else [json.loads(tensor.as_numpy()[0]) for tensor in response.output_tensors()]

async def do_gather(self):
    return [self.values_of(one) for one in await asyncio.gather(*(self.request("echo", number).async_exec() for number in range(10)))]

async def do_stream(self):
    return [self.values_of(one) for one in await self.request("repeat", 3).async_exec(decoupled=True)]

async def do_missing(self):
    return self.values_of(await self.request("missing").async_exec())

async def do_blocking(self):
    return self.values_of(self.request("echo", 1).exec())

async def do_give_up(self):
    task = asyncio.ensure_future(asyncio.wait_for(self.request("cancellable").async_exec(), None))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "given up"
"""
ECHO = """
def execute(self, requests):
    return [self.answer(self.say(request)) for request in requests]

def say(self, request):
    plan = self.plan(request)
    if plan == ["details"]:
        return [
            request.request_id(), request.correlation_id(), request.flags(), request.timeout(), request.parameters(),
            request.trace().get_context(),
        ]
    return plan
"""
BACKGROUND = """
async def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        nested = pb_utils.InferenceRequest(model_name="collector", inputs=request.inputs(), requested_output_names=["OUT"])
        sender.send(await nested.async_exec())
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
COLLECTOR = """
def execute(self, requests):
    return [self.answer(gc.collect() >= 0) for _ in requests]
"""
BACKGROUND_CALLER = """
async def execute(self, requests):
    answers = [self.answer(await self.call(*self.plan(request))) for request in requests]
    for request, answer in zip(requests, answers):
        request.get_response_sender().send(answer, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

async def call(self, how="", model="", *plan):
    if not how:
        return "responded"
    given = pb_utils.Tensor("PLAN", np.array([json.dumps(plan).encode()], object))
    made = pb_utils.InferenceRequest(model_name=model, inputs=[given], requested_output_names=["OUT"])
    responses = made.exec(decoupled=True) if how == "block" else await made.async_exec(decoupled=True)
    return [self.values_of(response) for response in responses]

def values_of(self, response):
    return response.error().message() if response.has_error() else [json.loads(tensor.as_numpy()[0]) for tensor in response.output_tensors()]
"""
REPEAT = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in range(self.plan(request)[0]):
            sender.send(self.answer(number))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CANCELLABLE = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        sender.send(self.answer("begun"))
        open(os.path.join(pb_utils.get_model_dir(), "begun"), "w").close()
        while not request.is_cancelled():
            pass
        error = pb_utils.TritonError("cancelled by the client", pb_utils.TritonError.CANCELLED)
        sender.send(pb_utils.InferenceResponse(error=error), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RunningServer]:
    for mode in MODES:
        write_planned(mode, folder, mode, CALLER)
        write_planned(mode, folder, f"{mode}_async", ASYNC)
        write_planned(mode, folder, f"{mode}_background", BACKGROUND, PLAN + DECOUPLED)
        write_planned(mode, folder, f"{mode}_left", BACKGROUND_CALLER, PLAN + DECOUPLED)
    write_planned("m_thread", folder, "echo", ECHO)
    write_planned("m_thread", folder, "collector", COLLECTOR)
    write_planned("m_process", folder, "repeat", REPEAT, PLAN + DECOUPLED)
    write_planned("m_thread", folder, "cancellable", CANCELLABLE, PLAN + DECOUPLED)
    with serving(folder) as running:
        assert running.server.failures == {}
        yield running


PLANS: list[tuple[Any, ...]] = [
    ("early",),
    ("call", "echo", 1, "zwölf"),
    ("call", "missing"),
    ("call", "repeat", 1),
    ("details",),
    ("stream", "repeat", 3),
    ("stream", "repeat", 0),
    ("stream", "echo", 1),
    ("stream", "missing"),
    ("stream_twice",),
    ("cancel",),
    ("abandon",),
    ("version", 1),
    ("version", 3),
    ("output", "OUT"),
    ("output", "NOT_THERE"),
    ("output",),
    ("twice",),
    ("threads",),
    ("in_place",),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: " ".join(map(str, plan)))
def test_calls_have_equal_results_in_both_modes(
    server: RunningServer, plan: tuple[Any, ...]
) -> None:
    one, other = (query(server, mode, *plan, trace=traced("context")) for mode in MODES)
    assert one == other


def test_details_of_a_call_reach_the_called_model(server: RunningServer) -> None:
    for mode in MODES:
        assert query(server, mode, "details", trace=traced("context")) == [
            ["own", 5, 1, 7_000_000, '{"a":1}', "context"]
        ]


@pytest.mark.parametrize("what", ["gather", "stream", "missing", "blocking", "give_up"])
def test_calls_of_coroutines_have_equal_results_in_both_modes(
    server: RunningServer, what: str
) -> None:
    one, other = (query(server, f"{mode}_async", what) for mode in MODES)
    assert one == other
    assert one


@pytest.mark.parametrize("mode", MODES)
def test_a_background_coroutine_lives_until_its_call_has_a_response(
    server: RunningServer, mode: str
) -> None:
    model = f"{mode}_background"
    for _ in range(5):
        assert values_of(send(server, model, planned()), model) == [True, "end"]


def test_a_call_that_would_deadlock_is_rejected(server: RunningServer) -> None:
    one, other = (query(server, mode, "self", mode) for mode in MODES)
    assert one == other
    code, text = one
    assert code == 1
    assert text.startswith(
        "Model M - Error when running inference: the call would deadlock: instance 'M_0' waits for"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_blocking_call_to_the_own_model_is_rejected_in_a_coroutine(
    server: RunningServer, mode: str
) -> None:
    model = f"{mode}_left"
    (text,) = query(server, model, "block", model)
    assert text.startswith(
        "Model M - Error when running inference: the call would deadlock: instance 'M_0' waits for"
    )
    assert text.endswith(
        "(instance_group), or await 'async_exec' instead of 'exec', which blocks the event loop of all the coroutines of an instance."
    )
    assert query(server, model, "await", model) == [["responded"]]


@pytest.mark.parametrize("mode", MODES)
def test_a_coroutine_may_block_its_loop_for_another_model(server: RunningServer, mode: str) -> None:
    assert query(server, f"{mode}_left", "block", "echo", 1) == [[[1]]]


@pytest.mark.parametrize("mode", MODES)
def test_a_cycle_of_calls_through_a_blocked_loop_is_rejected(
    server: RunningServer, mode: str
) -> None:
    """The first request blocks the loop for the second one, which its instance already has."""
    first, second = f"{mode}_left", mode
    (answer,) = query(server, first, "await", second, "stream", first, "block", second, "early")
    assert "the call would deadlock" in str(answer)
    (answer,) = query(server, first, "block", second, "stream", first)
    assert "the call would deadlock" in str(answer)


@pytest.mark.parametrize("mode", MODES)
def test_calls_of_a_batch_of_several_requests_can_deadlock(tmp_path: Path, mode: str) -> None:
    config = """
    backend: "python" max_batch_size: 8 dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 30000000 }
    input { name: "PLAN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }
    """
    methods = """
def execute(self, requests):
    made = pb_utils.InferenceRequest(model_name="m", inputs=requests[0].inputs(), requested_output_names=["OUT"])
    text = made.exec().error().message()
    values_of = pb_utils.Tensor("OUT", np.array([[f"{len(requests)} {text}".encode()]], object))
    return [pb_utils.InferenceResponse([values_of]) for _ in requests]
"""
    write_in(mode, tmp_path, "m", methods, config)
    with serving(tmp_path) as server:
        recorder = RecordingSink()
        tensor = planned("")["PLAN"]
        tensor.shape = (1, 1)
        requests = [InferRequest("m", {"PLAN": tensor}, recorder.sink) for _ in range(2)]
        for request in requests:
            server.engine.infer(request)
        for (answer,) in recorder.wait(*requests):
            assert (
                answer.outputs[0]
                .strings()[0]
                .startswith(b"2 Model m - Error when running inference: the call would deadlock")
            )


@pytest.mark.parametrize("mode", MODES)
def test_cancelling_a_request_cancels_its_calls(
    server: RunningServer, folder: Path, mode: str
) -> None:
    recorder, begun = RecordingSink(), folder / "cancellable" / "1" / "begun"
    # Requests of earlier tests.
    wait_for(lambda: not server.server._repository._table.find("cancellable", -1).in_flight)
    begun.unlink(missing_ok=True)
    request = InferRequest(mode, planned("stream", "cancellable"), recorder.sink)
    before = server.engine.statistics("cancellable")[0].inference_stats.fail.count
    server.engine.infer(request)
    wait_for(begun.exists)
    request.cancel()
    (answers,) = recorder.wait(request)
    assert values_of(answers, mode) == [[["begun"], [7, "cancelled by the client"]]]
    assert server.engine.statistics("cancellable")[0].inference_stats.fail.count == before + 1


def test_models_can_load_and_unload_models(tmp_path: Path) -> None:
    methods = """
def step(self, name, *arguments):
    try:
        return getattr(pb_utils, name)(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def do_steps(self, request, *steps):
    return [self.step(*step) for step in steps]

def do_files(self, request, name, config, source):
    return self.step("load_model", name, config, {"file:1/model.py": source.encode()})
"""
    for mode in MODES:
        write_planned(mode, tmp_path, mode, methods)
    write_planned("m_thread", tmp_path, "echo", ECHO)
    steps = [
        ("is_model_ready", "echo"), ("load_model", "echo"), ("is_model_ready", "echo"), ("is_model_ready", "echo", "1"),
        ("is_model_ready", "echo", "2"), ("is_model_ready", "echo", "x"), ("is_model_ready", "missing"), ("load_model", "missing"),
        ("load_model", "echo", "{"), ("unload_model", "echo"), ("unload_model", "missing"), ("load_model", 7),
    ]  # fmt: skip
    with serving(tmp_path, control={"mode": "explicit", "load": list(MODES)}) as server:
        results = []
        for mode in MODES:
            results.append(query(server, mode, "steps", *steps))
            wait_for(lambda: not server.engine.repository_index(ready=True)[2:])
        assert results[0] == results[1]
        assert results[0][:6] == [False, None, True, True, False, results[0][5]]
        source = (tmp_path / "echo" / "1" / "model.py").read_text()
        for mode in MODES:
            config = '{"backend": "python", "input": [{"name": "PLAN", "data_type": "TYPE_STRING", "dims": [1]}], '
            config += '"output": [{"name": "OUT", "data_type": "TYPE_STRING", "dims": [1]}]}'
            assert query(server, mode, "files", f"made_by_{mode}", config, source) is None
            assert values_of(send(server, f"made_by_{mode}", planned(3)), mode) == [[3]]
