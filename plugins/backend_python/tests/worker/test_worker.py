from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tritonpy_ipc import VERSION
from tritonpy_ipc.sequence_frame import SequenceHeader, SequenceSlot

from .peer import Peer, Sent, fp32

Start = Callable[..., Peer]

ADD = """
def execute(self, requests):
    responses = []
    for request in requests:
        a = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
        b = pb_utils.get_input_tensor_by_name(request, "B").as_numpy()
        responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", a + b)]))
    return responses
"""


def test_responses_of_a_batch_are_sent_in_one_frame(worker: Start) -> None:
    peer = worker(ADD)
    answers = peer.execute([fp32("A", 1, 2), fp32("B", 10, 20)], [fp32("A", 3), fp32("B", 30)])
    assert [answer.outputs["OUT"].tolist() for answer in answers] == [[11, 22], [33]]
    assert all(answer.final and not answer.empty for answer in answers)
    assert peer.answer_frames == 1


def test_executions_of_a_frame_run_in_order(worker: Start) -> None:
    peer = worker(
        """
        def initialize(self, args):
            self.calls = 0

        def execute(self, requests):
            self.calls += 1
            out = np.array([self.calls, len(requests)], np.int32)
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]) for _ in requests]
        """
    )
    peer.send_batches([[fp32("A", 1)]], [[fp32("A", 2)], [fp32("A", 3)]], [[fp32("A", 4)]])
    answers = peer.until_responses(4)
    assert [(each.request, each.outputs["OUT"].tolist()) for each in answers] == [
        (0, [1, 1]),
        (1, [2, 2]),
        (2, [2, 2]),
        (3, [3, 1]),
    ]
    assert [execution for execution, _, _ in peer.done] == [1, 2, 3]
    assert all(start <= end for _, start, end in peer.done)
    assert [end for _, _, end in peer.done[:-1]] <= [start for _, start, _ in peer.done[1:]]


def test_only_requested_outputs_are_sent(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            self.wanted = [sorted(request.requested_output_names()) for request in requests]
            print(self.wanted)
            return [
                pb_utils.InferenceResponse([pb_utils.Tensor(name, np.zeros(1, np.int8)) for name in ("X", "Y", "Z")])
                for _ in requests
            ]
        """,
        outputs=["X", "Y"],
    )
    answers = peer.execute([fp32("A", 1)], [fp32("A", 1)], requested=[("Y",), None])
    assert [sorted(answer.outputs) for answer in answers] == [["Y"], ["X", "Y"]]
    assert peer.until_logged("[['Y'], ['X', 'Y']]")


def test_fields_of_a_request_reach_the_model(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            for request in requests:
                print(
                    request.request_id(), request.correlation_id(), request.flags(), request.timeout(),
                    request.parameters(), request.trace().get_context(),
                )
            return [pb_utils.InferenceResponse() for _ in requests]
        """
    )
    details = {
        "1": {
            "parameters": {"a": 1, "b": "x", "c": True, "d": 0.5},
            "timeout_us": 77,
            "trace": "{}",
        },
    }
    slots = [
        SequenceSlot(0, False, False, 0),
        SequenceSlot("seq", True, False, 1),
        SequenceSlot(9, False, True, 2),
    ]
    sequence_frames = [(SequenceHeader(0, 0, 0), slots)]
    peer.execute(
        [fp32("A", 1)],
        [fp32("A", 1)],
        [fp32("A", 1)],
        ids=["", "one", "two"],
        requests=details,
        sequence_frames=sequence_frames,
    )
    printed = "\n".join(log["message"] for log in peer.logs)
    assert printed.split("\n") == [
        " 0 0 0 {} None",
        'one seq 1 77 {"a":1,"b":"x","c":true,"d":0.5} {}',
        "two 9 2 0 {} None",
    ]


SHOWS_ALL_INPUTS = """
    def execute(self, requests):
        inputs = [
            f"{each.name()} {each.shape()} {each.as_numpy().reshape(-1).tolist()}" for request in requests for each in request.inputs()
        ]
        more = [
            f"{request.request_id()!r} {request.correlation_id()} {request.flags()} {request.is_cancelled()} {request.requested_output_names()}"
            for request in requests
        ]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([*inputs, *more], object))]) for request in requests]
"""


def test_a_slot_without_data_gets_a_null_request(worker: Start) -> None:
    peer = worker(SHOWS_ALL_INPUTS)
    words = Sent("B", "BYTES", (1, 1), np.frombuffer(b"\x02\0\0\0xy", np.uint8))
    ready = Sent("READY", "INT32", (3, 1), np.array([[0], [1], [0]], np.int32))
    sequence_frames = [(SequenceHeader(3, 1, 0), [SequenceSlot(5, True, False, 1)])]
    (answer,) = peer.execute(
        [fp32("A", 7), words], ids=["real"], sequence_frames=sequence_frames, added_rows=[[ready]]
    )
    assert texts(answer.outputs["OUT"]) == [
        *("A [1] [0.0]", "B [1, 1] [b'']", "READY [1, 1] [0]"),
        *("A [1] [7.0]", "B [1, 1] [b'xy']", "READY [1, 1] [1]"),
        *("A [1] [0.0]", "B [1, 1] [b'']", "READY [1, 1] [0]"),
        "'' 0 0 False set()",
        "'real' 5 1 False {'OUT'}",
        "'' 0 0 False set()",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('no')",
        "return [pb_utils.InferenceResponse(error=pb_utils.TritonError('no')) for _ in requests]",
        "return [pb_utils.InferenceResponse(), None, pb_utils.InferenceResponse()] and 1",
    ],
)
def test_null_requests_get_no_errors(worker: Start, body: str) -> None:
    peer = worker(f"""
    def execute(self, requests):
        {body}
    """)
    sequence_frames = [(SequenceHeader(3, 0, 0), [SequenceSlot(5, True, False, 1)])]
    (answer,) = peer.execute([fp32("A", 7)], sequence_frames=sequence_frames)
    assert answer.error is not None
    assert [answer.request for answer in peer.answers] == [0]


def test_responses_to_null_requests_are_discarded(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            for number, request in enumerate(requests):
                sender = request.get_response_sender()
                tensor = pb_utils.Tensor("OUT", np.array([number], np.int32))
                sender.send(pb_utils.InferenceResponse([tensor]))
                if number != 2:
                    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        """,
        decoupled=True,
    )
    sequence_frames = [(SequenceHeader(3, 0, 0), [SequenceSlot(5, True, False, 1)])]
    answers = peer.execute([fp32("A", 7)], sequence_frames=sequence_frames)
    assert {answer.request for answer in peer.answers} == {0}
    assert answers[0].outputs["OUT"].tolist() == [1]
    assert peer.execute([fp32("A", 7)], sequence_frames=sequence_frames)  # no state remains


def test_each_request_gets_its_row_of_added_tensors(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            return [
                pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(
                    [f"{each.name()} {each.shape()} {each.as_numpy().reshape(-1).tolist()}" for each in request.inputs()], object
                ))]) for request in requests
            ]
        """
    )
    start = Sent("START", "INT32", (3, 1), np.array([[1], [0], [5]], np.int32))
    names = b"".join(len(each).to_bytes(4, "little") + each for each in (b"a", b"bc", b"def"))
    correlation = Sent("CORRID", "BYTES", (3, 1), np.frombuffer(names, np.uint8))
    sequence_frames = [
        (
            SequenceHeader(0, 2, 0),
            [SequenceSlot(each, True, False, slot) for slot, each in enumerate(("a", "bc", "def"))],
        )
    ]
    answers = peer.execute(
        [fp32("A", 1)],
        [fp32("A", 2)],
        [fp32("A", 3)],
        sequence_frames=sequence_frames,
        added_rows=[[start, correlation]],
    )
    assert [texts(answer.outputs["OUT"]) for answer in answers] == [
        ["A [1] [1.0]", "START [1, 1] [1]", "CORRID [1, 1] [b'a']"],
        ["A [1] [2.0]", "START [1, 1] [0]", "CORRID [1, 1] [b'bc']"],
        ["A [1] [3.0]", "START [1, 1] [5]", "CORRID [1, 1] [b'def']"],
    ]


def texts(wire: np.ndarray) -> list[str]:
    data, found = wire.tobytes(), []
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(data[4 : 4 + size].decode())
        data = data[4 + size :]
    return found


@pytest.mark.parametrize("size", [4, 1 << 20])
def test_inputs_may_be_changed_in_place(worker: Start, size: int) -> None:
    peer = worker(
        """
        def execute(self, requests):
            arrays = [request.inputs()[0].as_numpy() for request in requests]
            for array in arrays:
                array *= 2
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)]) for array in arrays]
        """
    )
    for _ in range(3):
        answers = peer.execute([fp32("A", *range(size))], [fp32("A", *range(1, size + 1))])
        assert answers[0].outputs["OUT"][:4].tolist() == [0, 2, 4, 6]
        assert answers[1].outputs["OUT"][-1] == 2 * size


def test_memory_of_large_tensors_is_reused(worker: Start) -> None:
    peer = worker(ADD)
    large = fp32("A", *range(50_000)), fp32("B", *range(50_000))
    for _ in range(5):
        peer.execute(large)
        peer.answers.clear()
    assert peer.segment_count() <= 2


def test_a_response_without_outputs_is_a_response(worker: Start) -> None:
    peer = worker(
        "def execute(self, requests): return [pb_utils.InferenceResponse() for _ in requests]"
    )
    (answer,) = peer.execute([fp32("A", 1)])
    assert (answer.outputs, answer.final, answer.empty, answer.error) == ({}, True, False, None)


def test_parameters_and_errors_of_responses_are_sent(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            return [
                pb_utils.InferenceResponse(parameters={"a": 1, "b": "x"}),
                pb_utils.InferenceResponse(error=pb_utils.TritonError("bad", pb_utils.TritonError.NOT_FOUND)),
            ]
        """
    )
    first, second = peer.execute([fp32("A", 1)], [fp32("A", 1)])
    assert first.parameters == {"a": 1, "b": "x"}
    assert second.error == (2, "bad")


def test_an_exception_fails_its_batch_only(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            if requests[0].inputs()[0].as_numpy()[0] < 0:
                raise ValueError("negative")
            return [pb_utils.InferenceResponse() for _ in requests]
        """
    )
    peer.send_batches([[fp32("A", 1)]], [[fp32("A", -1)], [fp32("A", -1)]], [[fp32("A", 1)]])
    answers = peer.until_responses(4)
    assert [answer.error is None for answer in answers] == [True, False, False, True]
    assert answers[1].message == answers[2].message
    assert answers[1].message.startswith(
        "Failed to process the request(s) for model 'm_0_0', message: ValueError: negative\n\nAt:\n  "
    )
    assert answers[1].message.endswith("/m/1/model.py(8): execute\n")
    assert peer.until_logged("ValueError: negative")["level"] == "ERROR"


def test_sys_exit_in_execute_fails_its_batch_only(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            if requests[0].inputs()[0].as_numpy()[0] < 0:
                sys.exit(3)
            return [pb_utils.InferenceResponse() for _ in requests]
        """
    )
    assert "message: SystemExit: 3\n" in peer.execute([fp32("A", -1)])[0].message
    assert peer.execute([fp32("A", 1)])[0].error is None


def test_responses_do_not_wait_for_slow_executions_of_the_frame(
    worker: Start, tmp_path: Path
) -> None:
    peer = worker(
        """
        def execute(self, requests):
            value = requests[0].inputs()[0].as_numpy()[0]
            if value > 1:
                time.sleep(0.001)  # so that the next one is expected to take as long
            if value == 3:
                while not os.path.exists(os.environ["GO"]):
                    time.sleep(0.001)
            return [pb_utils.InferenceResponse() for _ in requests]
        """,
        env={"GO": str(tmp_path / "never")},
    )
    peer.send_batches([[fp32("A", 2)]], [[fp32("A", 2)]], [[fp32("A", 3)]])
    assert len(peer.until_responses(2)) == 2


def test_stop_lets_the_model_finalize_and_ends_the_process(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests): ...
        def finalize(self):
            print("cleaned up")
        """
    )
    assert peer.stop() == 0
    assert peer.logs[-1]["message"] == "cleaned up"


def test_an_exception_in_finalize_is_logged(worker: Start) -> None:
    peer = worker("def execute(self, requests): ...\ndef finalize(self): raise KeyError('gone')")
    assert peer.stop() == 0
    assert peer.logs[-1]["level"] == "INFO"
    assert peer.logs[-1]["message"].startswith("KeyError: 'gone'\n\nAt:\n")


def test_exit_handlers_of_the_interpreter_run(worker: Start) -> None:
    peer = worker(
        """
        def initialize(self, args):
            import atexit
            atexit.register(lambda: print("at the end"))

        def execute(self, requests): ...
        """
    )
    assert peer.stop() == 0
    assert "at the end" in peer.printed()


def test_a_failed_load_is_reported(start_worker: Start) -> None:
    peer = start_worker("def initialize(self, args):\n    raise RuntimeError('no weights')")
    text = peer.failed()
    assert text.startswith("RuntimeError: no weights\n\nAt:\n  ")
    assert text.endswith("/m/1/model.py(7): initialize\n")
    assert peer.ended() == 1


def test_sys_exit_in_initialize_fails_the_load(start_worker: Start) -> None:
    peer = start_worker("def initialize(self, args):\n    sys.exit(5)")
    assert peer.failed().startswith("SystemExit: 5\n")
    assert peer.ended() == 1


def test_a_server_with_another_protocol_version_is_rejected(start_worker: Start) -> None:
    assert (
        f"version {VERSION} of"
        in start_worker("def execute(self, requests): ...", version=99).failed()
    )


def test_initialize_gets_its_arguments_as_strings(worker: Start) -> None:
    peer = worker(
        "def initialize(self, args):\n    print(sorted(args), {type(each) for each in args.values()})"
    )
    assert peer.logs[0]["message"] == (
        "['model_config', 'model_instance_device_id', 'model_instance_kind', 'model_instance_name', "
        "'model_name', 'model_repository', 'model_version'] {<class 'str'>}"
    )


def test_model_threads_may_print_and_log(worker: Start) -> None:
    peer = worker(
        """
        def execute(self, requests):
            threads = [threading.Thread(target=pb_utils.Logger.log_info, args=(f"from {index}",)) for index in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return [pb_utils.InferenceResponse() for _ in requests]
        """
    )
    peer.execute([fp32("A", 1)])
    assert {log["message"] for log in peer.logs} == {f"from {index}" for index in range(8)}


def test_memory_of_inputs_is_returned_before_the_next_batch(worker: Start) -> None:
    peer = worker(
        "def execute(self, requests): return [pb_utils.InferenceResponse() for _ in requests]"
    )
    peer.execute([fp32("A", *range(50_000))])
    while peer.lent_count():
        peer.step()
