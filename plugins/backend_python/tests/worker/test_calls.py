from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .calling import HELPERS, answer, execute, finish
from .peer import Peer, fp32

Start = Callable[..., Peer]


def test_a_call_has_the_models_fields_and_returns_its_response(calling_execution: Start) -> None:
    peer = calling_execution(
        """
response = self.make_call(
    3, model_version=2, request_id="mine", correlation_id="s", flags=1, timeout=50, parameters={"p": 1},
    trace=requests[0].trace(),
).exec()
print(self.value(response), response.parameters())
"""
    )
    execute(peer)
    call = peer.call()
    assert (call.execution, call.request) == (1, 1)
    assert call.inputs["IN"].tolist() == [3]
    assert call.output_names == ("OUT",)
    assert call.details.pop("signatures")
    assert call.details == {
        "model": "other",
        "version": 2,
        "decoupled": False,
        "id": "mine",
        "parameters": {"p": 1},
        "sequence": ["s", True, False],
        "timeout_us": 50,
        "trace": True,
    }
    peer.answer_call(call, [fp32("OUT", 30)], parameters={"x": "y"})
    assert finish(peer) == '[30.0] {"x":"y"}'


def test_a_call_of_a_batch_belongs_to_none_of_its_requests(calling_execution: Start) -> None:
    peer = calling_execution("print(self.value(self.make_call(1).exec()))")
    execute(peer, count=2)
    call = peer.call()
    assert (call.execution, call.request) == (1, 0)
    answer(peer, call, 1)
    finish(peer)


def test_an_error_is_inside_the_response(calling_execution: Start) -> None:
    peer = calling_execution("print(self.value(self.make_call(1).exec()))")
    execute(peer)
    peer.answer_call(peer.call(), (), error=[2, "there is no such model"])
    assert finish(peer) == "['there is no such model', 2]"


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        ((10, "ResourceExhausted", 2.5), 4),
        ((9, "PermissionDenied"), 3),
        ((8, "Unauthenticated"), 3),
    ],
)
def test_additional_error_codes_map_to_tritons(
    calling_execution: Start, expected: tuple[Any, ...], code: int
) -> None:
    peer = calling_execution("print(self.value(self.make_call(1).exec()))")
    execute(peer)
    number, *more = expected
    peer.answer_call(peer.call(), (), error=[number, "not now", *more])
    assert finish(peer) == f"['not now', {code}]"


def test_an_empty_response_is_an_error(calling_execution: Start) -> None:
    peer = calling_execution("print(self.value(self.make_call(1).exec()))")
    execute(peer)
    peer.answer_call(peer.call(), None)
    assert finish(peer) == "['Unexpected empty response.', 1]"


def test_large_tensors_are_sent_in_both_directions(calling_execution: Start) -> None:
    peer = calling_execution(
        """
request = pb_utils.InferenceRequest(
    model_name="other", requested_output_names=[], inputs=[pb_utils.Tensor("IN", np.arange(100_000, dtype=np.float32))]
)
out = request.exec().output_tensors()[0].as_numpy()
print(out.shape, out[-1])
"""
    )
    execute(peer)
    call = peer.call()
    assert call.inputs["IN"][-1] == 99_999
    assert call.output_names is None
    peer.answer_call(call, [fp32("OUT", *range(200_000))])
    assert finish(peer) == "(200000,) 199999.0"


def test_calls_of_many_threads_get_their_own_answers(calling_execution: Start) -> None:
    peer = calling_execution(
        """
def run(index):
    for _ in range(5):
        assert self.value(self.make_call(index).exec()) == [10.0 * index]
    good.append(index)
good = []
threads = [threading.Thread(target=run, args=(index,)) for index in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(good))
"""
    )
    execute(peer)
    waiting = []
    for _ in range(8 * 5):
        waiting.append(peer.call())
        if len(waiting) == 4 or not peer.calls:
            for call in reversed(waiting):  # not in the order of the calls
                answer(peer, call, 10 * call.inputs["IN"][0])
            waiting.clear()
    assert finish(peer) == "8"


def test_a_nested_call_can_have_its_response_first(calling_execution: Start) -> None:
    # The main thread reads for a waiting thread, and vice versa.
    peer = calling_execution(
        """
def other():
    print("thread", self.value(self.make_call(1).exec()))
thread = threading.Thread(target=other)
thread.start()
print("main", self.value(self.make_call(2).exec()))
thread.join()
"""
    )
    execute(peer)
    calls = sorted((peer.call(), peer.call()), key=lambda call: call.inputs["IN"][0])
    answer(peer, calls[1], 20)
    peer.until_logged("main [20.0]")
    answer(peer, calls[0], 10)
    finish(peer)
    assert peer.until_logged("thread [10.0]")


def test_coroutines_call_concurrently(calling_execution: Start) -> None:
    peer = calling_execution(
        """
responses = await asyncio.gather(*[self.make_call(index).async_exec() for index in range(10)])
print([self.value(each)[0] for each in responses])
""",
        asynchronous=True,
    )
    execute(peer)
    calls = [peer.call() for _ in range(10)]
    for call in reversed(calls):
        assert (call.execution, call.request) == (1, 1)
        answer(peer, call, call.inputs["IN"][0])
    assert finish(peer) == str([float(index) for index in range(10)])


def test_calls_from_the_models_own_event_loop(calling_execution: Start) -> None:
    peer = calling_execution(
        """
async def both():
    return await asyncio.gather(self.make_call(1).async_exec(), self.make_call(2).async_exec())
print([self.value(each) for each in asyncio.run(both())])
print(self.value(self.make_call(3).exec()))
"""
    )
    execute(peer)
    for call in (peer.call(), peer.call()):
        answer(peer, call, call.inputs["IN"][0])
    answer(peer, peer.call(), 3)
    assert finish(peer) == "[[1.0], [2.0]]\n[3.0]"
    peer.done.clear()
    execute(peer)  # the main thread reads the socket again
    for _ in range(3):
        answer(peer, peer.call(), 0)
    finish(peer)


def test_a_call_with_a_cancelled_coroutine_is_cancelled(calling_execution: Start) -> None:
    peer = calling_execution(
        """
task = asyncio.ensure_future(self.make_call(1).async_exec())
await asyncio.sleep(0.01)
task.cancel()
await asyncio.gather(task, return_exceptions=True)
print(task.cancelled())
""",
        asynchronous=True,
    )
    execute(peer)
    call = peer.call()
    assert peer.frame(peer.CALL_CANCEL).words == (call.id,)
    assert finish(peer) == "True"
    answer(peer, call, 1)  # too late; has no effect
    assert peer.stop() == 0


def test_background_coroutines_of_a_decoupled_model_can_call(worker: Start) -> None:
    peer = worker(
        f"""
async def execute(self, requests):
    sender = requests[0].get_response_sender()
    value = self.value(await self.make_call(requests[0].inputs()[0].as_numpy()[0]).async_exec())
    sender.send(
        pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(value, np.float32))]),
        flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
    )
{HELPERS}
""",
        decoupled=True,
    )
    for value in range(5):
        peer.send_batches([[fp32("A", value)]])
    for _ in range(5):
        call = peer.call()
        assert (call.execution, call.request) == (0, call.inputs["IN"][0] + 1), (
            "no instance waits for it, a request does"
        )
        answer(peer, call, 10 * call.inputs["IN"][0])
    answers = peer.until_responses(5)
    assert sorted((each.request, each.outputs["OUT"][0]) for each in answers) == [
        (n, 10 * n) for n in range(5)
    ]


def test_other_models_can_only_be_called_in_execute(worker: Start) -> None:
    peer = worker(
        f"""
def initialize(self, args):
    self.attempt()

def finalize(self):
    self.attempt()

def attempt(self):
    try:
        self.make_call(1).exec()
    except pb_utils.TritonModelException as error:
        print(error)

def execute(self, requests): ...
{HELPERS}
"""
    )
    peer.stop()
    assert [log["message"] for log in peer.logs] == [
        "BLS is only supported during the 'execute' function."
    ] * 2


def test_responses_do_not_wait_for_a_call_of_the_next_execution(calling_execution: Start) -> None:
    peer = calling_execution(
        """
if requests[0].inputs()[0].as_numpy()[0] == 2:
    self.make_call(1).exec()
"""
    )
    peer.send_batches([[fp32("A", 1)]], [[fp32("A", 2)]])
    call = peer.call()
    assert [each.request for each in peer.answers] == [0]
    answer(peer, call, 1)
    peer.until_responses(2)


def test_queries_have_replies(worker: Start) -> None:
    peer = worker(
        """
def execute(self, requests):
    from tritonpy_worker import host
    print(host.current().query("echo", {"a": 1}))
    try:
        host.current().query("refuse", {})
    except pb_utils.TritonModelException as error:
        print("refused:", error)
    return [pb_utils.InferenceResponse() for _ in requests]
"""
    )
    execute(peer)
    question = peer.frame(peer.QUERY)
    assert question.extras == {"verb": "echo", "arguments": {"a": 1}}
    peer.send(peer.QUERY_RESULT, question.words, extras={"value": [1, "x"]})
    question = peer.frame(peer.QUERY)
    peer.send(peer.QUERY_RESULT, question.words, extras={"error": [3, "no"]})
    assert finish(peer) == "[1, 'x']\nrefused: no"
