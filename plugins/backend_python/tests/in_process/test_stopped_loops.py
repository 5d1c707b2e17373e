"""Calls of coroutines that continue after `execute`: deadlocks are rejected, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tritonpy_testing import RunningServer

from .modes import DECOUPLED, MODES, PLAN, query, serving, write_in

FOREVER = "the call would deadlock"
GOES_ON = """
def made(self, model, *plan):
    given = pb_utils.Tensor("PLAN", np.array([json.dumps(plan).encode()] , object).reshape(self.shape))
    return pb_utils.InferenceRequest(model_name=model, inputs=[given], requested_output_names=["OUT"])

shape = (1,)
late = None

def values_of(self, responses):
    return [
        one.error().message() if one.has_error() else [json.loads(tensor.as_numpy().ravel()[0]) for tensor in one.output_tensors()]
        for one in responses
    ]

def blocked(self, *plan):
    return self.values_of(self.made(*plan).exec(decoupled=True))

async def execute(self, requests):
    for request in requests:
        how, *plan = json.loads(pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy().ravel()[0])
        if how == "late":
            self.finish(request, "sent")
            self.late = self.blocked(*plan)
        else:
            self.finish(request, await getattr(self, "do_" + how)(*plan))

def finish(self, request, value):
    out = pb_utils.Tensor("OUT", np.array([json.dumps(value).encode()], object).reshape(self.shape))
    final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
    request.get_response_sender().send(pb_utils.InferenceResponse([out]), flags=final)

async def do_leaf(self):
    return "leaf"

async def do_awaited(self):
    return self.late

async def do_block(self, *plan):
    return self.blocked(*plan)

async def do_await(self, *plan):
    return self.values_of(await self.made(*plan).async_exec(decoupled=True))

async def do_thread(self, *plan):
    return await asyncio.to_thread(self.blocked, *plan)

async def do_own_loop(self, *plan):
    return await asyncio.to_thread(lambda: asyncio.run(self.do_block(*plan)))
"""
TWO = "instance_group { count: 2 kind: KIND_CPU }"
AROUND = """
platform: "ensemble"
input {{ name: "PLAN" data_type: TYPE_STRING dims: 1 }} output {{ name: "OUT" data_type: TYPE_STRING dims: 1 }}
ensemble_scheduling {{ step {{
  model_name: "{}" model_version: -1 input_map {{ key: "PLAN" value: "PLAN" }} output_map {{ key: "OUT" value: "OUT" }}
}} }}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("models")
    for mode in MODES:
        write_in(mode, folder, mode, GOES_ON, PLAN + DECOUPLED)
        write_in(mode, folder, f"{mode}_two", GOES_ON, PLAN + DECOUPLED + TWO)
        around = folder / f"{mode}_around"
        (around / "1").mkdir(parents=True)
        (around / "config.pbtxt").write_text(AROUND.format(mode))
    with serving(folder) as running:
        assert running.server.failures == {}
        yield running


@pytest.mark.parametrize("how", ["await", "thread", "own_loop"])
@pytest.mark.parametrize("model", ["{}", "{}_around", "{}_two"])
@pytest.mark.parametrize("mode", MODES)
def test_non_blocking_calls_to_the_own_model_succeed(
    server: RunningServer, mode: str, model: str, how: str
) -> None:
    called = model.format(mode)
    for _ in range(20):  # also while `execute` is about to return
        assert query(server, mode, how, called, "leaf") == [["leaf"]]


@pytest.mark.parametrize("model", ["{}", "{}_around"])
@pytest.mark.parametrize("mode", MODES)
def test_blocking_calls_to_the_own_model_are_rejected(
    server: RunningServer, mode: str, model: str
) -> None:
    for _ in range(20):
        assert FOREVER in str(query(server, mode, "block", model.format(mode), "leaf"))


@pytest.mark.parametrize("mode", MODES)
def test_blocking_calls_are_rejected_even_if_another_instance_is_free(
    server: RunningServer, mode: str
) -> None:
    for _ in range(20):
        assert FOREVER in str(query(server, f"{mode}_two", "block", f"{mode}_two", "leaf"))


@pytest.mark.parametrize("mode", MODES)
def test_blocking_calls_after_the_last_response_are_rejected(
    server: RunningServer, mode: str
) -> None:
    assert query(server, mode, "late", mode, "leaf") == "sent"
    assert FOREVER in str(query(server, mode, "awaited"))


@pytest.mark.parametrize("mode", MODES)
def test_cycles_of_two_models_are_rejected_and_the_models_keep_running(
    server: RunningServer, mode: str
) -> None:
    other = next(each for each in MODES if each != mode)
    for how in ("block", "await", "thread"):
        assert FOREVER in str(query(server, mode, "block", other, how, mode, "leaf"))
    for name in MODES:
        assert query(server, name, "leaf") == "leaf"
