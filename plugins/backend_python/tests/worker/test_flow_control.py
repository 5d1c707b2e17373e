"""Flow control: a slow client only blocks the model's responses to itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tritonpy_ipc import Kind
from tritonpy_ipc.windows import MAX_BYTES, MAX_RESPONSES

from .peer import Peer, fp32

Start = Callable[..., Peer]
WINDOW = MAX_RESPONSES
HELPERS = """
def initialize(self, args):
    self.logger = pb_utils.Logger

def size(self, request):
    return int(request.inputs()[0].as_numpy()[0])

def say(self, request, value=0.0, size=1):
    data = np.full(size, value, np.float32)
    request.get_response_sender().send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]))

def end(self, request):
    request.get_response_sender().send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

def stream(self, request):
    for value in range(self.size(request)):
        self.say(request, value)
    self.end(request)
"""
IN_EXECUTE = """
def execute(self, requests):
    for request in requests:
        self.stream(request)
"""
IN_THREADS = """
def execute(self, requests):
    for request in requests:
        threading.Thread(target=self.stream, args=(request,)).start()
"""
IN_COROUTINES = """
async def execute(self, requests):
    await asyncio.gather(*[self.stream_slowly(request) for request in requests])

async def stream_slowly(self, request):
    for value in range(self.size(request)):
        self.say(request, value)
        await asyncio.sleep(0)
    self.end(request)
"""
UNTIL_CANCELLED = """
def execute(self, requests):
    for request in requests:
        count = 0
        while not request.is_cancelled():
            self.say(request)
            count += 1
        self.logger.log_info(f"stopped after {count}")
        self.end(request)
"""


@pytest.fixture
def streaming(worker: Start) -> Start:
    return lambda code, **options: worker(
        code.strip("\n") + "\n" + HELPERS, **{"decoupled": True, **options}
    )


def values(peer: Peer, request: int) -> list[float]:
    return [
        answer.outputs["OUT"][0]
        for answer in peer.answers
        if answer.request == request and not answer.empty
    ]


def until_over(peer: Peer, request: int) -> list[float]:
    while not any(answer.request == request and answer.final for answer in peer.answers):
        peer.step()
    return values(peer, request)


def fetched(peer: Peer, request: int) -> list[float]:
    """Let the client of a request fetch everything. Return all values that it received."""
    peer.fetch(request)
    return until_over(peer, request)


def wait_for_output(peer: Peer, request: int, count: int) -> None:
    while len(values(peer, request)) < count:
        peer.step()


def answers_of_another(peer: Peer) -> list[float]:
    """Run a short request, during which a blocked stream could wrongly continue."""
    return until_over(peer, peer.send_batches([[fp32("A", 3)]]))


@pytest.mark.parametrize("code", [IN_EXECUTE, IN_THREADS, IN_COROUTINES])
def test_a_stream_within_its_window_does_not_wait(streaming: Start, code: str) -> None:
    peer = streaming(code)
    request = peer.send_batches([[fp32("A", WINDOW)]])
    assert until_over(peer, request) == list(range(WINDOW))
    assert peer.wait_for_room_query() == request


@pytest.mark.parametrize("code", [IN_EXECUTE, IN_THREADS, IN_COROUTINES])
def test_a_longer_stream_waits_for_capacity(streaming: Start, code: str) -> None:
    peer = streaming(code)
    request = peer.send_batches([[fp32("A", 10 * WINDOW)]])
    wait_for_output(peer, request, WINDOW)
    assert peer.grant() == request
    wait_for_output(peer, request, WINDOW + WINDOW // 2)
    assert fetched(peer, request) == list(range(10 * WINDOW))


@pytest.mark.parametrize(("code", "over"), [(IN_THREADS, 0), (IN_COROUTINES, 1)])
def test_a_waiting_stream_blocks_no_other_request(streaming: Start, code: str, over: int) -> None:
    peer = streaming(code)
    slow = peer.send_batches([[fp32("A", 2 * WINDOW)]])
    wait_for_output(peer, slow, WINDOW)
    for _ in range(3):
        assert answers_of_another(peer) == [0, 1, 2]
    # A coroutine waits at its next await, so it has already sent one response more.
    assert WINDOW <= len(values(peer, slow)) <= WINDOW + over
    assert fetched(peer, slow) == list(range(2 * WINDOW))


def test_streams_of_one_batch_wait_for_their_own_clients(streaming: Start) -> None:
    peer = streaming(IN_COROUTINES)
    first = peer.send_batches([[fp32("A", 2 * WINDOW)], [fp32("A", 2 * WINDOW)], [fp32("A", 2)]])
    until_over(peer, first + 2)
    while len(peer.room_queries) < 2:
        peer.step()
    assert fetched(peer, first + 1) == list(range(2 * WINDOW))
    assert len(values(peer, first)) <= WINDOW + 1
    assert fetched(peer, first) == list(range(2 * WINDOW))


def test_a_model_with_its_own_event_loop_waits_like_a_thread(streaming: Start) -> None:
    peer = streaming("""
def execute(self, requests):
    for request in requests:
        threading.Thread(target=asyncio.run, args=(self.later(request),)).start()

async def later(self, request):
    self.stream(request)
""")
    slow = peer.send_batches([[fp32("A", 2 * WINDOW)]])
    wait_for_output(peer, slow, WINDOW)
    assert answers_of_another(peer) == [0, 1, 2]
    assert len(values(peer, slow)) == WINDOW
    assert fetched(peer, slow) == list(range(2 * WINDOW))


def test_large_responses_fill_the_window_sooner(streaming: Start) -> None:
    peer = streaming(f"""
def execute(self, requests):
    for request in requests:
        self.say(request, 1, {MAX_BYTES})
        self.say(request, 2)
        self.end(request)
""")
    request = peer.send_batches([[fp32("A", 0)]])
    assert peer.wait_for_room_query() == request
    assert values(peer, request) == [1]
    peer.grant()
    assert until_over(peer, request) == [1, 2]


def test_cancellation_ends_the_wait_for_capacity(streaming: Start) -> None:
    peer = streaming(UNTIL_CANCELLED)
    request = peer.send_batches([[fp32("A", 0)]])
    wait_for_output(peer, request, WINDOW)
    peer.send(Kind.CANCEL, [request])
    peer.grant()
    peer.until_logged("stopped after 12")  # the window, or also the response that waited
    until_over(peer, request)
    assert len(values(peer, request)) in {WINDOW, WINDOW + 1}


def test_the_final_response_does_not_wait_and_ends_other_waits(streaming: Start) -> None:
    peer = streaming("""
def execute(self, requests):
    (request,) = requests
    if self.size(request) == 0:
        self.thread = threading.Thread(target=self.flood, args=(request,))
        self.thread.start()
        self.slow = request
    else:
        self.end(self.slow)
        self.thread.join()
        self.end(request)

def flood(self, request):
    try:
        while True:
            self.say(request)
    except pb_utils.TritonModelException:
        pass
""")
    slow = peer.send_batches([[fp32("A", 0)]])
    wait_for_output(peer, slow, WINDOW)
    other = peer.send_batches([[fp32("A", 1)]])
    until_over(peer, other)
    assert len(values(peer, slow)) == WINDOW
    peer.grant()
    assert peer.stop() == 0


def test_threads_of_one_request_share_its_window(streaming: Start) -> None:
    peer = streaming(f"""
def execute(self, requests):
    (request,) = requests
    threads = [threading.Thread(target=self.part, args=(request,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    self.end(request)

def part(self, request):
    for _ in range({WINDOW}):
        self.say(request)
""")
    request = peer.send_batches([[fp32("A", 0)]])
    assert len(fetched(peer, request)) == 4 * WINDOW


def test_a_thread_that_waits_for_capacity_reads_replies_for_others(streaming: Start) -> None:
    """One thread waits for its client, another calls a model: both get their frames."""
    peer = streaming("""
def execute(self, requests):
    (request,) = requests
    if self.size(request) > 1:
        threading.Thread(target=self.stream, args=(request,)).start()
        return
    call = pb_utils.InferenceRequest(
        model_name="other", requested_output_names=["OUT"], inputs=[pb_utils.Tensor("IN", np.zeros(1, np.float32))])
    self.say(request, call.exec().output_tensors()[0].as_numpy()[0])
    self.end(request)
""")
    slow = peer.send_batches([[fp32("A", 2 * WINDOW)]])
    wait_for_output(peer, slow, WINDOW)
    other = peer.send_batches([[fp32("A", 1)]])
    peer.answer_call(peer.call(), [fp32("OUT", 5)])
    assert until_over(peer, other) == [5]
    assert fetched(peer, slow) == list(range(2 * WINDOW))


@pytest.mark.parametrize("code", [IN_EXECUTE, IN_THREADS, IN_COROUTINES])
def test_the_end_of_the_server_ends_waiting_workers(streaming: Start, code: str) -> None:
    peer = streaming(code)
    wait_for_output(peer, peer.send_batches([[fp32("A", 2 * WINDOW)]]), WINDOW)
    peer.close_socket()
    peer.ended()


def test_a_forked_process_gets_an_error_instead_of_waiting(streaming: Start) -> None:
    peer = streaming(f"""
def execute(self, requests):
    (request,) = requests
    for _ in range({WINDOW}):
        self.say(request)
    if os.fork() == 0:
        try:
            self.say(request)
        except pb_utils.TritonModelException as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
    self.end(request)
""")
    until_over(peer, peer.send_batches([[fp32("A", 0)]]))
    assert "cannot be reached" in peer.next_printed()


def test_a_request_cancelled_before_its_execution_never_reaches_the_model(worker: Start) -> None:
    peer = worker("""
def execute(self, requests):
    values = [request.inputs()[0].as_numpy() for request in requests]
    pb_utils.Logger.log_info(f"executes {[int(each[0]) for each in values]}")
    for request in requests:
        while requests[0].inputs()[0].as_numpy()[0] == 0 and not request.is_cancelled():
            time.sleep(0.001)
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each)]) for each in values]
""")
    first = peer.send_batches([[fp32("A", 0)]], [[fp32("A", 1)], [fp32("A", 2)]], [[fp32("A", 3)]])
    peer.until_logged("executes [0]")
    peer.send(Kind.CANCEL, [first + 1, first + 3])
    peer.send(Kind.CANCEL, [first])
    answers = {answer.request: answer for answer in peer.until_responses(4)}
    peer.stop()
    assert [log["message"] for log in peer.logs] == ["executes [0]", "executes [2]"]
    assert answers[first + 1].error == answers[first + 3].error == (7, "Request cancelled")
    assert answers[first + 2].outputs["OUT"].tolist() == [2]
