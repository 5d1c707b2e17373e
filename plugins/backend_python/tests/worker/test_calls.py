from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .calling import HELPERS, answer, execute, finish
from .peer import Peer, fp32

Start = Callable[..., Peer]


def test_a_call_is_what_the_model_made_and_gives_its_response(caller: Start) -> None:
    peer = caller(
        """
response = self.ask(
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
    assert call.wanted == ("OUT",)
    assert call.said.pop("signatures")
    assert call.said == {
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


def test_a_call_of_a_batch_belongs_to_none_of_its_requests(caller: Start) -> None:
    peer = caller("print(self.value(self.ask(1).exec()))")
    execute(peer, count=2)
    call = peer.call()
    assert (call.execution, call.request) == (1, 0)
    answer(peer, call, 1)
    finish(peer)


def test_an_error_is_inside_the_response(caller: Start) -> None:
    peer = caller("print(self.value(self.ask(1).exec()))")
    execute(peer)
    peer.answer_call(peer.call(), (), error=[2, "there is no such model"])
    assert finish(peer) == "['there is no such model', 2]"


@pytest.mark.parametrize(
    ("said", "code"), [((10, "ResourceExhausted", 2.5), 4), ((9, "PermissionDenied"), 3), ((8, "Unauthenticated"), 3)]
)
def test_an_error_that_triton_has_not_is_one_that_it_has(caller: Start, said: tuple[Any, ...], code: int) -> None:
    peer = caller("print(self.value(self.ask(1).exec()))")
    execute(peer)
    number, *more = said
    peer.answer_call(peer.call(), (), error=[number, "not now", *more])
    assert finish(peer) == f"['not now', {code}]"


def test_a_model_that_answers_nothing_is_an_error(caller: Start) -> None:
    peer = caller("print(self.value(self.ask(1).exec()))")
    execute(peer)
    peer.answer_call(peer.call(), None)
    assert finish(peer) == "['Unexpected empty response.', 1]"


def test_large_tensors_go_both_ways(caller: Start) -> None:
    peer = caller(
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
    assert call.wanted is None
    peer.answer_call(call, [fp32("OUT", *range(200_000))])
    assert finish(peer) == "(200000,) 199999.0"


def test_calls_of_many_threads_get_their_own_answers(caller: Start) -> None:
    peer = caller(
        """
def run(index):
    for _ in range(5):
        assert self.value(self.ask(index).exec()) == [10.0 * index]
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
            for call in reversed(waiting):  # not in the order of the questions
                answer(peer, call, 10 * call.inputs["IN"][0])
            waiting.clear()
    assert finish(peer) == "8"


def test_a_callback_style_nested_call_is_answered_first(caller: Start) -> None:
    # The main thread reads for a thread that waits, and the other way round.
    peer = caller(
        """
def other():
    print("thread", self.value(self.ask(1).exec()))
thread = threading.Thread(target=other)
thread.start()
print("main", self.value(self.ask(2).exec()))
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


def test_coroutines_call_concurrently(caller: Start) -> None:
    peer = caller(
        """
responses = await asyncio.gather(*[self.ask(index).async_exec() for index in range(10)])
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


def test_an_event_loop_of_the_models_own_may_call(caller: Start) -> None:
    peer = caller(
        """
async def both():
    return await asyncio.gather(self.ask(1).async_exec(), self.ask(2).async_exec())
print([self.value(each) for each in asyncio.run(both())])
print(self.value(self.ask(3).exec()))
"""
    )
    execute(peer)
    for call in (peer.call(), peer.call()):
        answer(peer, call, call.inputs["IN"][0])
    answer(peer, peer.call(), 3)
    assert finish(peer) == "[[1.0], [2.0]]\n[3.0]"
    peer.done.clear()
    execute(peer)  # the socket is the main thread's again
    for _ in range(3):
        answer(peer, peer.call(), 0)
    finish(peer)


def test_a_call_that_is_not_awaited_any_more_is_cancelled(caller: Start) -> None:
    peer = caller(
        """
task = asyncio.ensure_future(self.ask(1).async_exec())
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
    answer(peer, call, 1)  # too late, and harmless
    assert peer.stop() == 0


def test_background_coroutines_of_a_decoupled_model_call(worker: Start) -> None:
    peer = worker(
        f"""
async def execute(self, requests):
    sender = requests[0].get_response_sender()
    value = self.value(await self.ask(requests[0].inputs()[0].as_numpy()[0]).async_exec())
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
    answers = peer.until_answered(5)
    assert sorted((each.request, each.outputs["OUT"][0]) for each in answers) == [(n, 10 * n) for n in range(5)]


def test_other_models_can_be_called_in_execute_alone(worker: Start) -> None:
    peer = worker(
        f"""
def initialize(self, args):
    self.attempt()

def finalize(self):
    self.attempt()

def attempt(self):
    try:
        self.ask(1).exec()
    except pb_utils.TritonModelException as error:
        print(error)

def execute(self, requests): ...
{HELPERS}
"""
    )
    peer.stop()
    assert [log["message"] for log in peer.logs] == ["BLS is only supported during the 'execute' function."] * 2


def test_answers_do_not_wait_for_a_call_of_the_next_execution(caller: Start) -> None:
    peer = caller(
        """
if requests[0].inputs()[0].as_numpy()[0] == 2:
    self.ask(1).exec()
"""
    )
    peer.send_batches([[fp32("A", 1)]], [[fp32("A", 2)]])
    call = peer.call()
    assert [each.request for each in peer.answers] == [0]
    answer(peer, call, 1)
    peer.until_answered(2)


def test_questions_have_replies(worker: Start) -> None:
    peer = worker(
        """
def execute(self, requests):
    from tritonpy_worker import host
    print(host.current().ask("echo", {"a": 1}))
    try:
        host.current().ask("refuse", {})
    except pb_utils.TritonModelException as error:
        print("refused:", error)
    return [pb_utils.InferenceResponse() for _ in requests]
"""
    )
    execute(peer)
    question = peer.frame(peer.ASK)
    assert question.extras == {"verb": "echo", "arguments": {"a": 1}}
    peer.send(peer.REPLY, question.words, extras={"value": [1, "x"]})
    question = peer.frame(peer.ASK)
    peer.send(peer.REPLY, question.words, extras={"error": [3, "no"]})
    assert finish(peer) == "[1, 'x']\nrefused: no"
