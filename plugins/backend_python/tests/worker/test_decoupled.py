from __future__ import annotations

from collections.abc import Callable

import pytest

from .peer import Peer, fp32

Start = Callable[..., Peer]
FINAL = "flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL"
ABANDONED = "Failed to process the request(s) for model 'm_0_0', message: the model released the request without a response."
HELPERS = """
def say(self, request, value):
    request.get_response_sender().send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], np.float32))]))

def end(self, request):
    request.get_response_sender().send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.fixture
def decoupled(worker: Start) -> Start:
    return lambda code, **options: worker(
        code.strip("\n") + "\n" + HELPERS, **{"decoupled": True, **options}
    )


def values(peer: Peer, request: int) -> list[float]:
    return [
        answer.outputs["OUT"][0]
        for answer in peer.answers
        if answer.request == request and not answer.empty
    ]


def test_a_request_may_have_any_number_of_responses(decoupled: Start) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    for request in requests:
        for index in range(int(request.inputs()[0].as_numpy()[0])):
            self.say(request, index)
        self.end(request)
"""
    )
    answers = peer.execute([fp32("A", 3)], [fp32("A", 0)])
    assert values(peer, 0) == [0, 1, 2]
    assert values(peer, 1) == []
    assert [(each.final, each.empty) for each in answers if each.request == 0] == [
        (False, False)
    ] * 3 + [(True, True)]


def test_only_requested_outputs_are_sent(decoupled: Start) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    for request in requests:
        self.say(request, 1)
        self.end(request)
"""
    )
    peer.execute([fp32("A", 3)], requested=[("OTHER",)])
    assert peer.answers[0].outputs == {}


def test_threads_can_respond_after_execute_returned(decoupled: Start) -> None:
    peer = decoupled(
        """
def initialize(self, args):
    self.go = threading.Event()

def execute(self, requests):
    if requests[0].inputs()[0].as_numpy()[0] == 0:
        self.go.set()
        self.end(requests[0])
        return
    def answer(request):
        self.go.wait()
        self.say(request, 7)
        self.end(request)
    for request in requests:
        threading.Thread(target=answer, args=(request,)).start()
"""
    )
    peer.send_batches([[fp32("A", 1)], [fp32("A", 1)]])
    while not peer.done:
        peer.step()
    assert peer.answers == []
    peer.execute([fp32("A", 0)])
    peer.until_responses(5)
    assert values(peer, 0) == values(peer, 1) == [7]


def test_a_dropped_request_gets_an_error(decoupled: Start) -> None:
    peer = decoupled("def execute(self, requests): ...")
    (answer,) = peer.execute([fp32("A", 1)])
    assert (answer.message, answer.final) == (ABANDONED, True)
    assert peer.logs[0]["message"] == ABANDONED


def test_a_request_that_was_dropped_later_gets_an_error(decoupled: Start) -> None:
    peer = decoupled(
        """
kept = []
def execute(self, requests):
    self.kept.clear()
    self.kept += [request.get_response_sender() for request in requests]
"""
    )
    first = peer.send_batches([[fp32("A", 1)]])
    while not peer.done:
        peer.step()
    assert peer.answers == []
    peer.send_batches([[fp32("A", 1)]])
    assert [(each.request, each.message) for each in peer.until_responses(1)] == [
        (first, ABANDONED)
    ]


def test_a_dropped_stream_is_ended(decoupled: Start) -> None:
    peer = decoupled("def execute(self, requests): self.say(requests[0], 1)")
    answers = peer.execute([fp32("A", 1)])
    assert [(each.final, each.empty, each.error) for each in answers] == [
        (False, False, None),
        (True, True, None),
    ]


def test_no_response_can_follow_the_final_one(decoupled: Start) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    self.end(requests[0])
    try:
        self.say(requests[0], 1)
    except pb_utils.TritonModelException as error:
        print(error)
"""
    )
    peer.execute([fp32("A", 1)])
    assert peer.until_logged("Unable to send response. Response sender has been closed.")
    assert len(peer.answers) == 1


def test_an_exception_fails_unfinished_requests(decoupled: Start) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    self.say(requests[0], 1)
    self.end(requests[1])
    raise ValueError("half way")
"""
    )
    peer.execute([fp32("A", 1)], [fp32("A", 1)])
    assert [each.error is not None for each in peer.answers if each.request == 0] == [False, True]
    assert [each.error is not None for each in peer.answers if each.request == 1] == [False]


def test_the_next_execution_begins_before_a_coroutine_ends(decoupled: Start) -> None:
    peer = decoupled(
        """
def initialize(self, args):
    self.go = None

async def execute(self, requests):
    self.go = self.go or asyncio.Event()
    if requests[0].inputs()[0].as_numpy()[0] == 0:
        self.go.set()
    await self.go.wait()
    for request in requests:
        self.say(request, 5)
        self.end(request)
"""
    )
    peer.send_batches([[fp32("A", 1)]])
    while not peer.done:
        peer.step()
    assert peer.answers == []
    peer.send_batches([[fp32("A", 0)]])
    peer.until_responses(4)
    assert values(peer, 0) == values(peer, 1) == [5]


def test_an_exception_of_a_coroutine_fails_unfinished_requests(decoupled: Start) -> None:
    peer = decoupled(
        """
async def execute(self, requests):
    self.say(requests[0], 1)
    self.end(requests[1])
    await asyncio.sleep(0)
    raise ValueError("in the background")
"""
    )
    peer.execute([fp32("A", 1)], [fp32("A", 1)])
    (error,) = [each for each in peer.answers if each.error is not None]
    assert (error.request, error.final) == (0, True)
    assert error.message.startswith(
        "Failed to process the request(s) for model 'm_0_0', message: ValueError: in the background\n\nAt:\n"
    )


def test_a_request_dropped_by_a_coroutine_gets_an_error(decoupled: Start) -> None:
    peer = decoupled("async def execute(self, requests): await asyncio.sleep(0)")
    (answer,) = peer.execute([fp32("A", 1)])
    assert answer.message == ABANDONED


def test_coroutines_end_with_the_worker(decoupled: Start) -> None:
    peer = decoupled(
        """
async def execute(self, requests):
    self.end(requests[0])
    print("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled")
"""
    )
    peer.execute([fp32("A", 1)])
    peer.until_logged("waiting")
    assert peer.stop() == 0


def test_cancellations_are_visible_during_execution(decoupled: Start) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    print("running")
    first, second = requests
    while not second.is_cancelled():
        pass
    self.say(first, first.is_cancelled())
    self.say(second, second.get_response_sender().is_cancelled())
    self.end(first)
    self.end(second)
"""
    )
    first = peer.send_batches([[fp32("A", 1)], [fp32("A", 1)]])
    peer.until_logged("running")
    peer.send(peer.CANCEL, [first + 1])
    peer.until_responses(4)
    assert (values(peer, 0), values(peer, 1)) == ([0], [1])


def test_a_request_cancelled_before_its_execution_does_not_reach_the_model(
    decoupled: Start,
) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    for request in requests:
        while request.inputs()[0].as_numpy()[0] == 0 and not request.is_cancelled():
            time.sleep(0.001)  # until all of it was sent
        self.say(request, request.is_cancelled())
        self.end(request)
"""
    )
    first = peer.send_batches([[fp32("A", 0)]], [[fp32("A", 1)]])
    second = peer.send_batches([[fp32("A", 1)], [fp32("A", 1)]])
    peer.send(peer.CANCEL, [second + 1])
    peer.send(peer.CANCEL, [first])
    while not {second, second + 1} <= {answer.request for answer in peer.answers if answer.final}:
        peer.step()
    (cancelled,) = [answer for answer in peer.answers if answer.request == second + 1]
    assert (values(peer, second), cancelled.error) == ([0], (7, "Request cancelled"))


def test_a_model_that_is_not_decoupled_may_respond_later(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            def answer(sender):
                done.wait()
                sender.send(pb_utils.InferenceResponse(), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            done = threading.Event()
            threading.Thread(target=answer, args=(requests[1].get_response_sender(),)).start()
            threading.Timer(0, done.set).start()
            return [pb_utils.InferenceResponse(), None, None]
        """
    )
    answers = peer.execute([fp32("A", 1)], [fp32("A", 1)], [fp32("A", 1)])
    by_request = {answer.request: answer for answer in answers}
    assert by_request[0].error is None
    assert by_request[1].error is None
    assert by_request[2].message == ABANDONED


def test_the_sender_of_a_finished_request_rejects_responses(worker: Start) -> None:
    peer = worker(
        """
        kept = []
        def execute(self, requests):
            for request in self.kept:
                try:
                    request.get_response_sender().send(pb_utils.InferenceResponse())
                except pb_utils.TritonModelException as error:
                    print(error)
            self.kept = requests
            return [pb_utils.InferenceResponse() for _ in requests]
        """
    )
    peer.execute([fp32("A", 1)])
    peer.execute([fp32("A", 1)])
    assert peer.logs[0]["message"] == (
        "Unable to send response. Non-decoupled model cannot send more than one response."
    )
    assert len(peer.answers) == 2


def test_requests_can_be_rescheduled(decoupled: Start) -> None:
    peer = decoupled(
        """
def execute(self, requests):
    for request in requests:
        self.say(request, 1)
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
"""
    )
    answers = peer.execute([fp32("A", 1)])
    assert [each.final for each in answers] == [False]
    assert peer.rescheduled == [0]
