"""The backend in a worker of a real server, with a stand-in for vLLM's engine."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tritonpy import InferRequest, Tensor, TritonError
from tritonpy_backend_vllm import tritonpy_backend_folders
from tritonpy_testing import InferInput, InProcessClient, SlowClient, running_server

FAKE = Path(__file__).parent / "fake_vllm"
CONFIG = 'backend: "vllm" instance_group [{ count: 1 kind: KIND_MODEL }]'
METRICS = 'parameters { key: "REPORT_CUSTOM_METRICS" value { string_value: "true" } }'
HEALTH = 'parameters { key: "ENABLE_VLLM_HEALTH_CHECK" value { string_value: "true" } }'
WAIT_S = 20


class Repository:
    def __init__(self, path):
        self.path = path

    def add(self, name, arguments=None, config=CONFIG, **files):
        folder = self.path / name / "1"
        folder.mkdir(parents=True)
        (folder.parent / "config.pbtxt").write_text(config)
        if arguments is not None:
            (folder / "model.json").write_text(json.dumps(arguments))
        for file, content in files.items():
            (folder / f"{file}.json").write_text(json.dumps(content))
        return folder


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{FAKE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    path = tmp_path / "log"
    monkeypatch.setenv("FAKE_VLLM_LOG", str(path))
    return path


@pytest.fixture
def repository(tmp_path, log):
    return Repository(tmp_path / "models")


@pytest.fixture
def serve(repository):
    def start_server(**more):
        ports = {"http": False, "grpc": False, "metrics": False}
        config = {"repositories": [{"url": str(repository.path)}], "frontends": ports, **more}
        return running_server(config)

    return start_server


def texts(name, *values):
    array = np.array([value.encode() for value in values], np.object_)
    return InferInput(name, [len(values)], "BYTES").set_data_from_numpy(array)


def flag(name, value=True):
    return InferInput(name, [1], "BOOL").set_data_from_numpy(np.array([value]))


def start(server, prompt, *inputs, model="chat", sampling=None, parameters=None):
    """Start a request and return the client and the list that gets responses and errors."""
    client, results = InProcessClient(server), []
    client.start_stream(lambda result, error: results.append(result or error))
    given = [*inputs] if prompt is None else [texts("text_input", prompt), *inputs]
    if sampling is not None:
        given.append(texts("sampling_parameters", json.dumps(sampling)))
    client.async_stream_infer(model, given, parameters=parameters)
    return client, results


def ask(server, prompt, *inputs, **options):
    client, results = start(server, prompt, *inputs, **options)
    client.stop_stream()
    return results


def text_of(results):
    return "".join(result.as_numpy("text_output")[0].decode() for result in results)


def message_of(results):
    [error] = results
    return error.message()


def eventually(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_folder_of_the_backend_is_registered():
    folder = tritonpy_backend_folders()["vllm"]
    assert (folder / "model.py").is_file()


def test_inputs_and_outputs_are_those_of_vllm_backend(repository, serve):
    repository.add("chat", {"model": "any"})
    with serve() as server:
        config = server.engine.model_config("chat")
    assert config.model_transaction_policy.decoupled
    assert config.max_batch_size == 0
    inputs = {each.name: (each.data_type, list(each.dims), each.optional) for each in config.input}
    assert inputs["text_input"] == (13, [1], True)
    assert inputs["sampling_parameters"] == (13, [1], True)
    assert inputs["return_num_output_tokens"] == (1, [1], True)
    outputs = {each.name: (each.data_type, list(each.dims)) for each in config.output}
    assert outputs["text_output"] == (13, [-1])
    assert outputs["num_input_tokens"] == (4, [1])


def test_texts_and_streams(repository, serve):
    repository.add("chat", {"model": "any"})
    with serve() as server:
        whole = ask(server, "a b c")
        assert (len(whole), text_of(whole)) == (1, "a b ca b c ")
        assert text_of(ask(server, "a b c", flag("exclude_input_in_output"))) == "a b c "
        stream = ask(server, "a b c", flag("stream"))
        assert [text_of([each]) for each in stream] == ["a ", "b ", "c "]
        assert message_of(
            ask(server, "a", flag("stream"), flag("exclude_input_in_output", False))
        ) == (
            "Error generating stream: When streaming, `exclude_input_in_output` = False is not "
            "allowed."
        )
        ids = InferInput("input_ids", [2], "INT32").set_data_from_numpy(np.array([5, 6], np.int32))
        assert text_of(ask(server, None, ids)) == "#5 #6 "
        assert "neither text_input nor input_ids" in message_of(ask(server, None))


def test_additional_outputs(repository, serve):
    repository.add("chat", {"model": "any"})
    names = (
        "finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens",
        "num_output_tokens", "num_cached_tokens",
    )  # fmt: skip
    flags = [flag(f"return_{name}") for name in names]
    with serve() as server:
        stream = ask(server, "a b", flag("stream"), *flags, sampling={"logprobs": 1})
        assert [each.as_numpy("finish_reason")[0] for each in stream] == [b"None", b"stop"]
        assert [int(each.as_numpy("num_input_tokens")[0]) for each in stream] == [2, 2]
        assert [int(each.as_numpy("num_output_tokens")[0]) for each in stream] == [1, 1]
        assert int(stream[0].as_numpy("num_cached_tokens")[0]) == 3
        assert float(stream[0].as_numpy("cumulative_logprob")[0]) == -0.5
        assert json.loads(stream[1].as_numpy("logprobs")[0]) == [
            {"7": {"logprob": -0.5, "rank": 1, "decoded_token": "b"}}
        ]
        [plain] = ask(server, "a b", *flags)
        assert plain.as_numpy("logprobs")[0] == b"null"
        assert ask(server, "a b")[0].as_numpy("finish_reason") is None


def test_sampling_parameters_are_a_tensor_or_request_parameters(repository, serve):
    repository.add("chat", {"model": "any"})
    exclude = flag("exclude_input_in_output")
    with serve() as server:
        assert text_of(ask(server, "a b c", exclude, sampling={"max_tokens": "2"})) == "a b "
        assert text_of(ask(server, "a b c", exclude, parameters={"max_tokens": "2"})) == "a b "
        several = ask(server, "a", exclude, sampling={"n": 2})[0].as_numpy("text_output")
        assert several.tolist() == [b"a ", b"a "]
        options = ask(
            server,
            "options",
            exclude,
            sampling={
                "logit_bias": {"5": 1},
                "structured_outputs": '{"json": {"a": 1}, "json_object": null}',
            },
        )
        assert text_of(options) == (
            "{5: 1.0} StructuredOutputsParams(json={'a': 1}, json_object=None) "
        )
        for sampling in ({"temperature": -1}, {"unknown": 1}, [1]):
            assert message_of(ask(server, "a", sampling=sampling)).startswith(
                "Error generating stream: "
            )


def test_adapters(repository, serve):
    repository.add("plain", {"model": "any"})
    repository.add("chat", {"model": "any", "enable_lora": "true"}, multi_lora={"cats": "./cats"})
    with serve() as server:
        assert message_of(ask(server, "a", model="plain", sampling={"lora_name": "cats"})) == (
            "LoRA feature is not enabled."
        )
        assert message_of(ask(server, "a", sampling={"lora_name": "dogs"})) == (
            "LoRA dogs is not supported, we currently support ['cats']"
        )
        text = text_of(ask(server, "a", flag("stream"), sampling={"lora_name": "cats"}))
        assert text.startswith("cats@/")
        assert text.endswith("/chat/1/./cats a ")


def test_embeddings(repository, serve):
    repository.add("chat", {"model": "any"})
    repository.add("embed", {"model": "any", "task": "embed"})
    request = {"input": "a b", "pooling_params": {"dimensions": [2]}}
    counts = flag("return_num_input_tokens"), flag("return_num_output_tokens")
    with serve() as server:
        given = texts("embedding_request", json.dumps(request))
        [result] = ask(server, None, given, *counts, model="embed")
        assert json.loads(result.as_numpy("text_output")[0]) == [0.0, 1.0]
        assert [int(result.as_numpy(f"num_{each}_tokens")[0]) for each in ("input", "output")] == [
            2,
            0,
        ]
        assert message_of(ask(server, None, given)) == (
            "Error generating stream: Model chat does not support 'embed' request"
        )
        assert "does not support 'generate' request" in message_of(ask(server, "a", model="embed"))


def test_texts_become_tokens_and_back(repository, serve):
    repository.add("chat", {"model": "m"})

    def tokenize(server, **values):
        return ask(server, None, texts("tokenize_request", json.dumps(values)))

    with serve() as server:
        assert json.loads(text_of(tokenize(server, text="Hi"))) == {
            "tokens": [1, 72, 105],
            "pieces": ["\x01", "H", "i"],
        }
        plain = json.loads(text_of(tokenize(server, text="Hi", add_special_tokens=False)))
        assert plain["tokens"] == [72, 105]
        assert json.loads(text_of(tokenize(server, tokens=[72, 105]))) == {"text": "Hi"}
        assert "tokenize_request needs 'text' or 'tokens'" in message_of(
            tokenize(server, tokens="Hi")
        )


@pytest.mark.parametrize(
    ("arguments", "more", "text"),
    [
        (None, "", "'model.json' containing vllm engine args must be provided in '"),
        ({"model": "missing"}, "", "the model 'missing' does not exist"),
        ({"unknown": 1}, "", "unknown"),
        ([1], "", "model.json must contain a JSON object"),
        ({"model": "any", "enable_lora": True}, "", "Triton backend cannot find "),
    ],
)
def test_a_faulty_model_fails_to_load(repository, serve, arguments, more, text):
    repository.add("chat", arguments, CONFIG + more)
    with serve(control={"mode": "explicit"}) as server:
        with pytest.raises(TritonError) as failed:
            server.engine.load_model("chat")
        assert text in str(failed.value)


def test_a_model_inside_the_folder_is_found(tmp_path):
    sys.path.append(str(tritonpy_backend_folders()["vllm"]))
    from tritonpy_vllm.settings import SettingsFault, check_devices, engine_arguments, flag

    (tmp_path / "weights").mkdir()
    (tmp_path / "model.json").write_text('{"model": "weights", "tokenizer": "hub/name"}')
    arguments = engine_arguments(str(tmp_path))
    assert arguments == {"model": str(tmp_path / "weights"), "tokenizer": "hub/name"}
    (tmp_path / "model.json").write_text('{"model": "../weights"}')
    assert engine_arguments(str(tmp_path))["model"] == "../weights"
    (tmp_path / "model.json").write_text('{"model": "."}')
    assert engine_arguments(str(tmp_path))["model"] == str(tmp_path)
    check_devices({"tensor_parallel_size": 2}, "MODEL")
    with pytest.raises(SettingsFault, match="please specify KIND_MODEL"):
        check_devices({"tensor_parallel_size": 2, "pipeline_parallel_size": 1}, "GPU")
    assert flag({"parameters": {"A": {"string_value": "True"}}}, "A")
    assert not flag({}, "A")


def test_a_cancelled_request_is_aborted(repository, serve, log):
    repository.add("chat", {"model": "any"})
    with serve() as server:
        for stream in (True, False):
            log.unlink(missing_ok=True)
            client, _ = start(server, "forever", flag("stream", stream))
            eventually(lambda: log.exists() and log.read_text() == "began ")
            client.stop_stream(cancel_requests=True)
            eventually(lambda: log.read_text() == "began aborted ")
        assert text_of(ask(server, "a", flag("stream"))) == "a "


def test_a_slow_client_does_not_hold_up_others(repository, serve):
    repository.add("chat", {"model": "any"})
    with serve() as server:
        slow = SlowClient(4)
        tensors = {
            "text_input": Tensor.from_numpy("text_input", np.array([b"forever"], np.object_)),
            "stream": Tensor.from_numpy("stream", np.array([True])),
        }
        request = InferRequest("chat", tensors, slow, accepts_decoupled=True)
        server.engine.infer(request)
        slow.wait_until_full()
        assert text_of(ask(server, "a b", flag("stream"))) == "a b "
        slow.leave(request)
    assert slow.most < 40


def test_an_error_of_the_engine_is_the_error_of_its_request(repository, serve):
    repository.add("chat", {"model": "any"})
    with serve() as server:
        assert message_of(ask(server, "broken")) == (
            "Error generating stream: the engine is broken"
        )
        assert text_of(ask(server, "a", flag("stream"))) == "a "


def test_a_dead_engine_restarts(repository, serve):
    repository.add("chat", {"model": "any"})
    with serve() as server:
        assert "Stub process" in message_of(ask(server, "dead"))
        assert text_of(ask(server, "a", flag("stream"))) == "a "


def test_an_unhealthy_engine_unloads_its_model(repository, serve):
    repository.add("chat", {"model": "any"}, CONFIG + HEALTH)
    with serve(control={"mode": "explicit", "load": ["chat"]}) as server:
        ask(server, "sick")
        assert message_of(ask(server, "a")) == ("Model is unavailable due to unhealthy vLLM engine")
        eventually(lambda: not server.engine.repository_index(ready=True))


def test_metrics(repository, serve):
    repository.add("chat", {"model": "any"}, CONFIG + METRICS)
    repository.add("silent", {"model": "any", "disable_log_stats": True}, CONFIG + METRICS)
    with serve() as server:
        ask(server, "a b", model="silent")
        ask(server, "a b c")

        def values():
            return {
                (family.name, tuple(sorted(each.labels.items()))): each
                for family in server.engine.custom_metrics()
                for each in family.metrics
            }

        labels = (("model", "chat"), ("version", "1"))
        eventually(
            lambda: (
                ("vllm:request_success_total", (("finished_reason", "stop"), *labels)) in values()
            )
        )
        found = values()
        assert found["vllm:prompt_tokens_total", labels].value == 3
        assert found["vllm:generation_tokens_total", labels].value == 3
        assert found["vllm:kv_cache_usage_perc", labels].value == 0.25
        assert found["vllm:prefix_cache_hits_total", labels].value == 4
        assert found["vllm:num_requests_waiting", labels].value == 1
        assert found["vllm:time_to_first_token_seconds", labels].histogram.count == 1
        assert not any(("model", "silent") in labels for _, labels in found)
