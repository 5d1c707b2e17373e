"""The backend as a server uses it; its numbers are those of plain numpy."""

from __future__ import annotations

import gc
import json
import shutil
import threading
from pathlib import Path
from random import Random
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import tritonpy_backend_transformer
from tritonpy import Batch, CallbackSink, InferRequest, MemoryUsage, Tensor, TritonError
from tritonpy.testing import BackendContract, SlowClient
from tritonpy_backend_transformer import lane as lane_module
from tritonpy_backend_transformer.backend import TransformerBackend
from tritonpy_backend_transformer.lane import Desk
from tritonpy_backend_transformer.sharing import Pace

from .conftest import inputs, output
from .tiny_models import START, TOKENS, numbers_of, write_tokenizer

ONE_THREAD = ' parameters { key: "intra_op_thread_count" value { string_value: "1" } }'
ISOLATED = ' parameters { key: "isolation" value { string_value: "process" } }'


class TransformerContract(BackendContract):
    plugin_class = TransformerBackend
    plugin = tritonpy_backend_transformer
    name = "transformer"
    source: Path

    def write_model(self, version_folder: Path) -> None:
        shutil.copytree(self.source, version_folder, dirs_exist_ok=True)


class TestWriting(TransformerContract):
    config = 'name: "m" backend: "transformer"' + ONE_THREAD

    @pytest.fixture(autouse=True)
    def _source(self, decoder) -> None:
        self.source = decoder[0]

    def make_inputs(self, harness, random: Random, rows: int) -> dict[str, Any]:
        return inputs("".join(random.choice("abc xyz€") for _ in range(5)), stream=True, max_tokens=6)

    def bad_inputs(self, harness, random):
        return inputs("x", temperature=-1.0)


class TestWritingAtOnce(TransformerContract):
    config = (
        'name: "m" backend: "transformer" model_transaction_policy { decoupled: false }'
        ' output { name: "text_output" data_type: TYPE_STRING dims: 1 } output { name: "output_ids" data_type: TYPE_INT32 dims: -1 }'
        ' output { name: "finish_reason" data_type: TYPE_STRING dims: 1 } output { name: "cumulative_logprob" data_type: TYPE_FP32 dims: 1 }'
        ' output { name: "logprobs" data_type: TYPE_STRING dims: 1 } output { name: "num_input_tokens" data_type: TYPE_UINT32 dims: 1 }'
        ' output { name: "num_output_tokens" data_type: TYPE_UINT32 dims: 1 }' + ONE_THREAD
    )

    @pytest.fixture(autouse=True)
    def _source(self, decoder) -> None:
        self.source = decoder[0]

    def make_inputs(self, harness, random: Random, rows: int) -> dict[str, Any]:
        flags = ("finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens", "num_output_tokens")
        return inputs("abc", max_tokens=6, **{f"return_{flag}": True for flag in flags})

    def bad_inputs(self, harness, random):
        return inputs("x", stream=True)


class TestTranslating(TestWriting):
    @pytest.fixture(autouse=True)
    def _source(self, translator) -> None:
        self.source = translator[0]


class TestEmbedding(TransformerContract):
    config = 'name: "m" backend: "transformer" max_batch_size: 8' + ONE_THREAD

    @pytest.fixture(autouse=True)
    def _source(self, encoder) -> None:
        self.source = encoder[0]

    def make_inputs(self, harness, random: Random, rows: int) -> dict[str, Any]:
        words = [
            "".join(random.choice("abc xyz€") for _ in range(random.randrange(1, 6))).encode() for _ in range(rows)
        ]
        return {"text_input": np.array(words, object).reshape(rows, 1)}

    def bad_inputs(self, harness, random):
        return {"input_ids": np.full((1, 3), 10_000, np.int64)}


class TestIsolatedWriting(TestWriting):
    config = TestWriting.config + ISOLATED


def test_what_a_decoder_writes_is_what_its_weights_say(decoder, load):
    folder, plain = decoder
    prompt = [START, *numbers_of("hallo")]
    with load(folder) as harness:
        [[answer]] = harness.execute(
            harness.request(inputs("hallo", max_tokens=24), ["output_ids", "num_input_tokens"])
        )
    assert output(answer, "output_ids") == plain.greedy(prompt, 24)
    assert output(answer, "num_input_tokens") == [len(prompt)]


def test_a_stream_is_the_same_text_in_pieces(decoder, load):
    folder, plain = decoder
    with load(folder) as harness:
        [answers] = harness.execute(harness.request(inputs("hallo", stream=True, max_tokens=24), ["output_ids"]))
    numbers = [number for answer in answers for number in output(answer, "output_ids")]
    assert numbers == plain.greedy([START, *numbers_of("hallo")], 24)
    assert [answer.final for answer in answers] == [False] * (len(answers) - 1) + [True]


def test_everything_that_can_be_told_of_a_text(speaker, load):
    flags = ("finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens", "num_output_tokens")
    with load(speaker(numbers_of("good"))) as harness:
        request = harness.request(inputs("Hi", **{f"return_{flag}": True for flag in flags}))
        [[answer]] = harness.execute(request)
    assert [tensor.name for tensor in answer.outputs] == ["text_output", *flags]
    assert output(answer) == ["Higood"]
    assert output(answer, "finish_reason") == ["stop"]
    assert (output(answer, "num_input_tokens"), output(answer, "num_output_tokens")) == ([3], [4])
    [[[first, *_]]] = [[json.loads(each) for each in output(answer, "logprobs")]]
    [(number, told)] = first.items()
    assert (number, told["decoded_token"]) == (str(TOKENS.index("g")), "g")
    assert sum(
        next(iter(step.values()))["logprob"] for step in json.loads(output(answer, "logprobs")[0])
    ) == pytest.approx(output(answer, "cumulative_logprob")[0], abs=1e-4)


def test_several_texts_of_one_prompt(decoder, load):
    with load(decoder[0]) as harness:
        [[drawn]] = harness.execute(harness.request(inputs("hallo", n=3, temperature=1.0, seed=4, max_tokens=8)))
        [[again]] = harness.execute(harness.request(inputs("hallo", n=3, temperature=1.0, seed=4, max_tokens=8)))
        [[searched]] = harness.execute(harness.request(inputs("hallo", n=2, beam_width=4, max_tokens=8)))
    assert len(set(output(drawn))) == 3
    assert output(again) == output(drawn)
    assert len(set(output(searched))) == 2


class Reader:
    """Sends requests to an instance from within the answers to others."""

    def __init__(self, harness) -> None:
        self.harness = harness
        self.numbers: dict[str, list[int]] = {}
        self.errors: list[TritonError] = []
        self.open = 0
        self.over = threading.Event()
        self.on_answer = lambda name: None

    def send(self, name: str, **values: Any) -> InferRequest:
        arrays = inputs(name, stream=True, **values)
        tensors = {key: Tensor.from_numpy(key, array) for key, array in arrays.items()}
        outputs = {"output_ids": None}
        request = InferRequest(
            "m", tensors, CallbackSink(self._put), 1, id=name, outputs=outputs, accepts_decoupled=True
        )
        self.open += 1
        self.harness.instance.execute(Batch([request], model=self.harness.model))
        return request

    def _put(self, request, response) -> None:
        if response.error is None:
            self.numbers.setdefault(request.id, []).extend(output(response, "output_ids"))
            self.on_answer(request.id)
        else:
            self.errors.append(response.error)
        self.open -= response.final
        if not self.open:
            self.over.set()

    def wait(self) -> None:
        assert self.over.wait(20), "a request was not answered"


@pytest.fixture
def calls(monkeypatch):
    """How many texts each call of the library had; joining costs nothing."""
    found = []

    class Counted(lane_module._Call):
        def __init__(self, texts, *rest) -> None:
            found.append(len(texts))
            super().__init__(texts, *rest)

    monkeypatch.setattr(lane_module, "Pace", lambda: Pace(token=1e-9, step=1.0))
    monkeypatch.setattr(lane_module, "_Call", Counted)
    return found


def test_a_request_joins_those_that_run_and_all_texts_are_right(decoder, load, calls):
    folder, plain = decoder
    with load(folder, inter_op_thread_count="1") as harness:
        reader = Reader(harness)

        def join(name):
            for count, newcomer in ((3, "second"), (7, "third one")):
                if name == "hallo" and len(reader.numbers[name]) == count:
                    reader.send(newcomer, max_tokens=20)

        reader.on_answer = join
        reader.send("hallo", max_tokens=40)
        reader.wait()
    assert calls == [1, 2, 3]
    for name, count in (("hallo", 40), ("second", 20), ("third one", 20)):
        assert reader.numbers[name] == plain.greedy([START, *numbers_of(name)], count)


def test_a_request_that_is_cancelled_ends_and_the_others_go_on(decoder, load):
    folder, plain = decoder
    with load(folder) as harness:
        reader = Reader(harness)
        requests = []

        def cancel(name):
            if name == "hallo" and len(reader.numbers[name]) == 5:
                requests[0].cancel()

        reader.on_answer = cancel
        requests += [reader.send("hallo", max_tokens=80), reader.send("second", max_tokens=20)]
        reader.wait()
    assert [error.message for error in reader.errors] == ["Request cancelled"]
    assert len(reader.numbers["hallo"]) == 5
    assert reader.numbers["second"] == plain.greedy([START, *numbers_of("second")], 20)


def test_a_reader_that_does_not_read_holds_nobody_up(decoder, load):
    with load(decoder[0], inter_op_thread_count="1") as harness:
        client = SlowClient(1)
        tensors = {
            key: Tensor.from_numpy(key, array) for key, array in inputs("hallo", stream=True, max_tokens=60).items()
        }
        request = InferRequest("m", tensors, client, 1, outputs={"output_ids": None}, accepts_decoupled=True)
        harness.instance.execute(Batch([request], model=harness.model))
        reader = Reader(harness)
        reader.send("second", max_tokens=20)
        reader.wait()
        numbers = [number for answer in client.fetch_all() for number in output(answer, "output_ids")]
    assert len(reader.numbers["second"]) == 20
    assert len(numbers) == 60
    assert client.most <= 2


def test_the_scheduler_keeps_what_the_lanes_have_no_room_for(decoder, load):
    with load(decoder[0], inter_op_thread_count="3", max_num_seqs="4") as harness:
        assert harness.instance.instance.max_open == 12


def test_weights_are_told_as_memory(decoder, load):
    with load(decoder[0]) as harness:
        [usage] = TransformerBackend.shared_memory_usage(harness.model.shared)
    assert (usage.type, usage.id) == ("CPU", 0)
    assert usage.byte_size > 100_000
    assert isinstance(usage, MemoryUsage)


def reachable(start):
    """Return the types of everything that `start` keeps alive, modules and classes aside."""
    seen, todo = {id(start)}, [start]
    while todo:
        for each in gc.get_referents(todo.pop()):
            if id(each) not in seen and not isinstance(each, (ModuleType, type, FunctionType)):
                seen.add(id(each))
                todo.append(each)
                yield type(each).__name__


def test_the_librarys_own_thread_never_holds_the_library(decoder, load, monkeypatch):
    """It would wait for its own end if it were the last to let go."""
    texts = []
    monkeypatch.setattr(Desk, "submit", lambda _desk, more: texts.extend(more))
    with load(decoder[0]) as harness:
        tensors = {key: Tensor.from_numpy(key, array) for key, array in inputs("hallo").items()}
        request = InferRequest("m", tensors, CallbackSink(lambda *_: None), 1)
        harness.instance.execute(Batch([request]))
        harness.model.shared.close()  # as when the model is unloaded
        found = set(reachable(texts[0]))
        assert "Generation" in found
        assert not {"Generator", "Studio", "Lane", "Decoder"} & found
        assert "Generator" in set(reachable(harness.instance))


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda folder: (folder / "vocabulary.json").unlink(), "the vocabulary of the model is missing"),
        (lambda folder: (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:5000]), "is damaged or was cut off"),
        (lambda folder: write_tokenizer(folder, tokens=[*TOKENS[:3], "!", "?"]), "belongs to another model"),
        (lambda folder: (folder / "model.bin").unlink(), "unable to find"),
    ],
)  # fmt: skip
def test_a_model_that_is_broken_fails_its_load_with_the_reason(decoder, load, spoil, text):
    harness = load(decoder[0])
    spoil(harness.model.path / "model")
    with pytest.raises(TritonError) as caught, harness:
        pass
    assert text in caught.value.message
