"""The backend in a harness, compared with models in plain numpy."""

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
from tritonpy_backend_transformer import lane as lane_module
from tritonpy_backend_transformer.backend import TransformerBackend
from tritonpy_backend_transformer.lane import TextQueue
from tritonpy_backend_transformer.shared_calls import CallTimes
from tritonpy_testing import BackendContract, SlowClient

from .conftest import inputs, output
from .tiny_models import START, TOKENS, token_ids_of, write_tokenizer

ONE_THREAD = ' parameters { key: "intra_op_thread_count" value { string_value: "1" } }'
ISOLATED = ' parameters { key: "isolation" value { string_value: "process" } }'


class TransformerContract(BackendContract):
    plugin_class = TransformerBackend
    plugin = tritonpy_backend_transformer
    name = "transformer"
    source: Path

    def write_model(self, version_folder: Path) -> None:
        shutil.copytree(self.source, version_folder, dirs_exist_ok=True)


class TestGeneration(TransformerContract):
    config = 'name: "m" backend: "transformer"' + ONE_THREAD

    @pytest.fixture(autouse=True)
    def _source(self, decoder) -> None:
        self.source = decoder[0]

    def make_inputs(self, harness, random: Random, rows: int) -> dict[str, Any]:
        return inputs(
            "".join(random.choice("abc xyz€") for _ in range(5)), stream=True, max_tokens=6
        )

    def bad_inputs(self, harness, random):
        return inputs("x", temperature=-1.0)


class TestGenerationWithoutStream(TransformerContract):
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
        flags = (
            "finish_reason",
            "cumulative_logprob",
            "logprobs",
            "num_input_tokens",
            "num_output_tokens",
        )
        return inputs("abc", max_tokens=6, **{f"return_{flag}": True for flag in flags})

    def bad_inputs(self, harness, random):
        return inputs("x", stream=True)


class TestTranslation(TestGeneration):
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
            "".join(random.choice("abc xyz€") for _ in range(random.randrange(1, 6))).encode()
            for _ in range(rows)
        ]
        return {"text_input": np.array(words, object).reshape(rows, 1)}

    def bad_inputs(self, harness, random):
        return {"input_ids": np.full((1, 3), 10_000, np.int64)}


class TestIsolatedGeneration(TestGeneration):
    config = TestGeneration.config + ISOLATED


def test_a_decoder_generates_the_same_tokens_as_numpy(decoder, load):
    folder, plain = decoder
    prompt = [START, *token_ids_of("hallo")]
    with load(folder) as harness:
        [[response]] = harness.execute(
            harness.request(inputs("hallo", max_tokens=24), ["output_ids", "num_input_tokens"])
        )
    assert output(response, "output_ids") == plain.greedy(prompt, 24)
    assert output(response, "num_input_tokens") == [len(prompt)]


def test_a_stream_is_the_same_text_in_pieces(decoder, load):
    folder, plain = decoder
    with load(folder) as harness:
        [responses] = harness.execute(
            harness.request(inputs("hallo", stream=True, max_tokens=24), ["output_ids"])
        )
    token_ids = [number for response in responses for number in output(response, "output_ids")]
    assert token_ids == plain.greedy([START, *token_ids_of("hallo")], 24)
    assert [response.final for response in responses] == [False] * (len(responses) - 1) + [True]


def test_all_outputs_of_a_text(speaker, load):
    flags = (
        "finish_reason",
        "cumulative_logprob",
        "logprobs",
        "num_input_tokens",
        "num_output_tokens",
    )
    with load(speaker(token_ids_of("good"))) as harness:
        request = harness.request(inputs("Hi", **{f"return_{flag}": True for flag in flags}))
        [[response]] = harness.execute(request)
    assert [tensor.name for tensor in response.outputs] == ["text_output", *flags]
    assert output(response) == ["Higood"]
    assert output(response, "finish_reason") == ["stop"]
    assert (output(response, "num_input_tokens"), output(response, "num_output_tokens")) == (
        [3],
        [4],
    )
    [[[first, *_]]] = [[json.loads(each) for each in output(response, "logprobs")]]
    [(number, details)] = first.items()
    assert (number, details["decoded_token"]) == (str(TOKENS.index("g")), "g")
    assert sum(
        next(iter(step.values()))["logprob"] for step in json.loads(output(response, "logprobs")[0])
    ) == pytest.approx(output(response, "cumulative_logprob")[0], abs=1e-4)


def test_several_texts_of_one_prompt(decoder, load):
    with load(decoder[0]) as harness:
        [[drawn]] = harness.execute(
            harness.request(inputs("hallo", n=3, temperature=1.0, seed=4, max_tokens=8))
        )
        [[again]] = harness.execute(
            harness.request(inputs("hallo", n=3, temperature=1.0, seed=4, max_tokens=8))
        )
        [[uses_beam_search]] = harness.execute(
            harness.request(inputs("hallo", n=2, beam_width=4, max_tokens=8))
        )
    assert len(set(output(drawn))) == 3
    assert output(again) == output(drawn)
    assert len(set(output(uses_beam_search))) == 2


class StreamingClient:
    """Sends requests to an instance, also from the responses of others."""

    def __init__(self, harness) -> None:
        self.harness = harness
        self.token_ids: dict[str, list[int]] = {}
        self.errors: list[TritonError] = []
        self.unfinished = 0
        self.over = threading.Event()
        self.on_response = lambda name: None

    def send(self, name: str, **values: Any) -> InferRequest:
        arrays = inputs(name, stream=True, **values)
        tensors = {key: Tensor.from_numpy(key, array) for key, array in arrays.items()}
        outputs = {"output_ids": None}
        request = InferRequest(
            "m",
            tensors,
            CallbackSink(self._put),
            1,
            id=name,
            outputs=outputs,
            accepts_decoupled=True,
        )
        self.unfinished += 1
        self.harness.instance.execute(Batch([request], model=self.harness.model))
        return request

    def _put(self, request, response) -> None:
        if response.error is None:
            self.token_ids.setdefault(request.id, []).extend(output(response, "output_ids"))
            self.on_response(request.id)
        else:
            self.errors.append(response.error)
        self.unfinished -= response.final
        if not self.unfinished:
            self.over.set()

    def wait(self) -> None:
        assert self.over.wait(20), "a request got no final response"


@pytest.fixture
def calls(monkeypatch):
    """The number of texts in each call of CTranslate2; joining is free."""
    found = []

    class Counted(lane_module._Call):
        def __init__(self, texts, *rest) -> None:
            found.append(len(texts))
            super().__init__(texts, *rest)

    monkeypatch.setattr(lane_module, "CallTimes", lambda: CallTimes(token=1e-9, step=1.0))
    monkeypatch.setattr(lane_module, "_Call", Counted)
    return found


def test_requests_join_a_running_call_and_all_texts_are_correct(decoder, load, calls):
    folder, plain = decoder
    with load(folder, inter_op_thread_count="1") as harness:
        client = StreamingClient(harness)

        def join(name):
            for count, new_request in ((3, "second"), (7, "third one")):
                if name == "hallo" and len(client.token_ids[name]) == count:
                    client.send(new_request, max_tokens=20)

        client.on_response = join
        client.send("hallo", max_tokens=40)
        client.wait()
    assert calls == [1, 2, 3]
    for name, count in (("hallo", 40), ("second", 20), ("third one", 20)):
        assert client.token_ids[name] == plain.greedy([START, *token_ids_of(name)], count)


def test_a_cancelled_request_ends_and_others_continue(decoder, load):
    folder, plain = decoder
    with load(folder) as harness:
        client = StreamingClient(harness)
        requests = []

        def cancel(name):
            if name == "hallo" and len(client.token_ids[name]) == 5:
                requests[0].cancel()

        client.on_response = cancel
        requests += [client.send("hallo", max_tokens=80), client.send("second", max_tokens=20)]
        client.wait()
    assert [error.message for error in client.errors] == ["Request cancelled"]
    assert len(client.token_ids["hallo"]) == 5
    assert client.token_ids["second"] == plain.greedy([START, *token_ids_of("second")], 20)


def test_a_client_that_does_not_read_delays_no_other_client(decoder, load):
    with load(decoder[0], inter_op_thread_count="1") as harness:
        client = SlowClient(1)
        tensors = {
            key: Tensor.from_numpy(key, array)
            for key, array in inputs("hallo", stream=True, max_tokens=60).items()
        }
        request = InferRequest(
            "m", tensors, client, 1, outputs={"output_ids": None}, accepts_decoupled=True
        )
        harness.instance.execute(Batch([request], model=harness.model))
        other = StreamingClient(harness)
        other.send("second", max_tokens=20)
        other.wait()
        token_ids = [
            number for response in client.fetch_all() for number in output(response, "output_ids")
        ]
    assert len(other.token_ids["second"]) == 20
    assert len(token_ids) == 60
    assert client.most <= 2


def test_an_instance_accepts_as_many_requests_as_its_lanes_hold(decoder, load):
    with load(decoder[0], inter_op_thread_count="3", max_num_seqs="4") as harness:
        assert harness.instance.instance.max_open == 12


def test_weights_are_reported_as_memory(decoder, load):
    with load(decoder[0]) as harness:
        [usage] = TransformerBackend.shared_memory_usage(harness.model.shared)
    assert (usage.type, usage.id) == ("CPU", 0)
    assert usage.byte_size > 100_000
    assert isinstance(usage, MemoryUsage)


def reachable(start):
    """Yield the types of all objects that `start` keeps alive, except modules and classes."""
    seen, todo = {id(start)}, [start]
    while todo:
        for each in gc.get_referents(todo.pop()):
            if id(each) not in seen and not isinstance(each, (ModuleType, type, FunctionType)):
                seen.add(id(each))
                todo.append(each)
                yield type(each).__name__


def test_texts_do_not_reference_the_librarys_model(decoder, load, monkeypatch):
    """A library thread that releases the last reference to the model would wait for its own end."""
    texts = []
    monkeypatch.setattr(TextQueue, "submit", lambda _queue, more: texts.extend(more))
    with load(decoder[0]) as harness:
        tensors = {key: Tensor.from_numpy(key, array) for key, array in inputs("hallo").items()}
        request = InferRequest("m", tensors, CallbackSink(lambda *_: None), 1)
        harness.instance.execute(Batch([request]))
        harness.model.shared.close()  # as unloading the model does
        found = set(reachable(texts[0]))
        assert "Generation" in found
        assert not {"Generator", "Studio", "Lane", "Decoder"} & found
        assert "Generator" in set(reachable(harness.instance))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda folder: (folder / "vocabulary.json").unlink(), "the vocabulary of the model is missing"),
        (lambda folder: (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:5000]), "is damaged or truncated"),
        (lambda folder: write_tokenizer(folder, tokens=[*TOKENS[:3], "!", "?"]), "belongs to another model"),
        (lambda folder: (folder / "model.bin").unlink(), "unable to find"),
    ],
)  # fmt: skip
def test_loading_a_damaged_model_fails_with_the_reason(decoder, load, damage, text):
    harness = load(decoder[0])
    damage(harness.model.path / "model")
    with pytest.raises(TritonError) as caught, harness:
        pass
    assert text in caught.value.message
