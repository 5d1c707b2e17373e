"""Models in a server: Triton's endpoints and clients, and concurrent requests."""

from __future__ import annotations

import http.client
import json
import queue
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as http_clients
from tokenizers import decoders
from tritonclient import grpc

from tritonpy_testing import ModelRepository, RunningServer, running_server

from .tiny_models import END, START, TOKENS, token_ids_of, write_decoder, write_tokenizer

TEXT = "hállo € and goodbye"
ONE_THREAD = 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }'


@pytest.fixture
def server(
    model_repository: ModelRepository, speaker, decoder, encoder, translator
) -> Iterator[RunningServer]:
    models = {
        "speaker": speaker(token_ids_of(TEXT)), "decoder": decoder[0], "encoder": encoder[0], "translator": translator[0],
    }  # fmt: skip
    for name, folder in models.items():
        shutil.copytree(folder, model_repository.add(name, ONE_THREAD) / "1" / "model")
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False},
    }
    with running_server(config) as server:
        yield server


def post(server: RunningServer, path: str, **body: Any) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(server.http, timeout=30)) as connection:
        connection.request("POST", f"/v2/models/{path}", json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode()


def respond(server: RunningServer, path: str, **body: Any) -> dict[str, Any]:
    status, text = post(server, path, **body)
    assert status == 200, text
    return json.loads(text)


def events(server: RunningServer, path: str, **body: Any) -> list[dict[str, Any]]:
    status, text = post(server, path, **body)
    assert status == 200, text
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]


def test_generate_returns_prompt_and_text(server):
    response = respond(server, "speaker/generate", text_input="Hi", max_tokens=30)
    assert response["text_output"] == "Hi" + TEXT
    without_prompt = respond(
        server, "speaker/generate", text_input="Hi", max_tokens=30, exclude_input_in_output=True
    )
    assert without_prompt["text_output"] == TEXT


def test_generate_stream_has_a_response_per_character(server):
    responses = events(
        server,
        "speaker/generate_stream",
        text_input="Hi",
        stream=True,
        parameters={"max_tokens": 30},
    )
    assert "".join(response["text_output"] for response in responses) == TEXT
    # Each byte is a token, but characters are sent as a whole. The last response is empty.
    assert len(responses) == len(TEXT) + 1
    assert all("\N{REPLACEMENT CHARACTER}" not in response["text_output"] for response in responses)


def test_an_interval_makes_longer_responses(server):
    responses = events(
        server,
        "speaker/generate_stream",
        text_input="Hi",
        stream=True,
        max_tokens=30,
        stream_interval=8,
    )
    assert "".join(response["text_output"] for response in responses) == TEXT
    assert len(responses) == 3


def test_sampling_parameters_can_be_parameters_json_and_tensors(server):
    for body in (
        {"max_tokens": 2},
        {"parameters": {"max_new_tokens": 2}},
        {"sampling_parameters": json.dumps({"max_tokens": 2})},
        {"stop_words": ["llo"], "max_tokens": 30},
    ):
        response = respond(
            server, "speaker/generate", text_input="Hi", exclude_input_in_output=True, **body
        )
        assert response["text_output"] in {"h\N{REPLACEMENT CHARACTER}", "há"}, body


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {"text_input": "Hi", "max_tokens": 0},
            "'max_tokens' must be a whole number of at least 1, not '0'",
        ),
        (
            {"text_input": "Hi", "sampling_parameters": '{"heat": 1}'},
            "unknown sampling parameter 'heat'",
        ),
        (
            {"text_input": "x" * 80},
            "the prompt has 81 tokens, the model supports at most 64 prompt and generated tokens",
        ),
    ],
)
def test_an_invalid_request_gets_an_error(server, body, text):
    status, response = post(server, "speaker/generate", **body)
    assert status == 400
    assert text in json.loads(response)["error"]


def test_a_grpc_stream_ends_with_the_final_flag(server):
    responses: queue.Queue[Any] = queue.Queue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: responses.put((result, error)))
        text = grpc.InferInput("text_input", [1], "BYTES")
        text.set_data_from_numpy(np.array([b"Hi"], object))
        stream = grpc.InferInput("stream", [1], "BOOL")
        stream.set_data_from_numpy(np.array([True]))
        client.async_stream_infer(
            "speaker", [text, stream], request_id="7", parameters={"max_tokens": 30}
        )
        text_output, final = "", False
        while not final:
            result, error = responses.get(timeout=30)
            assert error is None
            response = result.get_response()
            text_output += result.as_numpy("text_output")[0].decode()
            final = (
                response.parameters["triton_final_response"].bool_param
                if response.parameters
                else False
            )
            assert response.id == "7"
        client.stop_stream()
    assert text_output == TEXT
    assert responses.empty()


def test_an_encoder_without_configuration_is_batched(server, encoder):
    _, plain = encoder
    with http_clients.InferenceServerClient(server.http) as client:
        config = client.get_model_config("encoder")
        assert config["max_batch_size"] == 4
        assert "dynamic_batching" in config
        text = http_clients.InferInput("text_input", [2, 1], "BYTES")
        text.set_data_from_numpy(np.array([[b"abc"], [b"some text"]], object))
        vectors = client.infer("encoder", [text]).as_numpy("embedding")
    for vector, words in zip(vectors, ["abc", "some text"], strict=True):
        mean = plain.encoder_states([START, *token_ids_of(words)]).mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_a_translator_takes_a_prefix(server, translator):
    _, plain = translator
    source, token_ids = [START, *token_ids_of("abc")], [START, *token_ids_of("x")]
    for _ in range(4):
        token_ids.append(int(np.argmax(plain.translator_scores(source, token_ids))))
    assert END not in token_ids
    response = respond(server, "translator/generate", text_input="abc", prefix="x", max_tokens=4)
    assert response == respond(
        server, "translator/generate", input_ids=source, prefix_ids=token_ids_of("x"), max_tokens=4
    )
    assert response["text_output"] == decoders.ByteLevel().decode(
        [TOKENS[number] for number in token_ids[2:]]
    )


def test_a_disconnected_client_ends_its_text(model_repository, tmp_path):
    write_decoder(tmp_path / "long", positions=30_000)
    write_tokenizer(tmp_path / "long")
    shutil.copytree(tmp_path / "long", model_repository.add("long", ONE_THREAD) / "1" / "model")
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
    }
    body = {"text_input": "Hi", "stream": True, "max_tokens": 29_000, "ignore_eos": True}
    with running_server(config) as server:
        connection = http.client.HTTPConnection(server.http, timeout=30)
        connection.request("POST", "/v2/models/long/generate_stream", json.dumps(body))
        response = connection.getresponse()
        assert response.readline().startswith(b"data: ")
        response.close()
        connection.close()
        wait_until(lambda: server.engine.statistics("long")[0].inference_stats.fail.count == 1)


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.005)


def test_a_model_is_warmed_up_before_it_serves(model_repository, decoder):
    config = """
        model_warmup { name: "one" inputs { key: "input_ids" value { data_type: TYPE_INT32 dims: 3 random_data: true } } }"""
    shutil.copytree(decoder[0], model_repository.add("m", config + ONE_THREAD) / "1" / "model")
    quiet = {"http": {"port": 0}, "grpc": False, "metrics": False}
    with running_server(
        {"repositories": [{"url": str(model_repository.path)}], "frontends": quiet}
    ) as server:
        assert server.engine.is_model_ready("m")
        assert server.engine.statistics("m")[0].inference_count == 0


def test_unloading_releases_the_librarys_model(model_repository, decoder):
    """Threads of CTranslate2 live as long as the weights."""
    shutil.copytree(decoder[0], model_repository.add("m", ONE_THREAD) / "1" / "model")
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
        "control": {"mode": "explicit"},
    }

    def native_threads():
        return len(list(Path("/proc/self/task").iterdir())) - threading.active_count()

    with running_server(config) as server:
        before = native_threads()
        for _ in range(3):
            server.engine.load_model("m")
            respond(server, "m/generate", text_input="Hi")
            assert native_threads() >= before + 2
            [usage] = server.engine.statistics("m")[0].memory_usage
            assert usage.byte_size > 100_000
            server.engine.unload_model("m")
            wait_until(lambda: native_threads() <= before)


CONFIGS = {
    "process": 'parameters { key: "isolation" value { string_value: "process" } }',
    "instances": "instance_group { kind: KIND_CPU count: 3 }",
    "policy": "dynamic_batching { priority_levels: 2 default_priority_level: 1 }",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_concurrent_streams_are_correct(model_repository, decoder, name):
    folder, plain = decoder
    shutil.copytree(folder, model_repository.add("m", CONFIGS[name] + ONE_THREAD) / "1" / "model")
    quiet = {"http": {"port": 0}, "grpc": False, "metrics": False}
    prompts = [
        [START, *token_ids_of(word)]
        for word in ("abc", "hallo", "x", "some text", "more", "and more")
    ]
    with (
        running_server(
            {"repositories": [{"url": str(model_repository.path)}], "frontends": quiet}
        ) as server,
        ThreadPoolExecutor(len(prompts)) as pool,
    ):
        responses_of = [
            pool.submit(
                events, server, "m/generate_stream", input_ids=prompt, stream=True, max_tokens=24,
                return_num_output_tokens=True, return_logprobs=True,
            )
            for prompt in prompts
        ]  # fmt: skip
        for prompt, responses in zip(prompts, responses_of, strict=True):
            steps = [
                step for response in responses.result() for step in json.loads(response["logprobs"])
            ]
            assert [int(next(iter(step))) for step in steps] == plain.greedy(prompt, 24)
            assert sum(response["num_output_tokens"] for response in responses.result()) == len(
                steps
            )
