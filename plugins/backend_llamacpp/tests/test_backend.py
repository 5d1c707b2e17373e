"""The backend in a worker of a real server, with llama.cpp and a model of random weights."""

from __future__ import annotations

import contextlib
import json
import time

import numpy as np
import psutil
import pytest

from tritonpy import TritonError
from tritonpy_backend_llamacpp import tritonpy_backend_folders
from tritonpy_testing import InferInput, InProcessClient, running_server

from .tiny_model import BYTES_AT, CONTEXT, write_adapter, write_model

WAIT_S = 20
FOREVER = {"ignore_eos": True, "max_tokens": CONTEXT}
WORD = {"structured_outputs": {"choice": ["yes", "no"]}, "temperature": 0}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_model(path)
    return path


@pytest.fixture
def add(tmp_path, tiny):
    def add_model(name, settings=None, config="", adapters=None):
        folder = tmp_path / "models" / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.gguf").symlink_to(tiny)
        if config:
            (folder.parent / "config.pbtxt").write_text(config)
        if settings is not None:
            (folder / "model.json").write_text(json.dumps({"threads": 1, **settings}))
        for each, strength in (adapters or {}).items():
            write_adapter(folder / f"{each}.gguf", strength)
        if adapters:
            named = {each: f"{each}.gguf" for each in adapters}
            (folder / "multi_lora.json").write_text(json.dumps(named))
        return folder

    return add_model


@pytest.fixture
def serve(tmp_path):
    def start_server(**more):
        ports = {"http": False, "grpc": False, "metrics": False}
        url = str(tmp_path / "models")
        return running_server({"repositories": [{"url": url}], "frontends": ports, **more})

    return start_server


def task(name):
    return f'parameters {{ key: "task" value {{ string_value: "{name}" }} }}'


def texts(name, value):
    array = np.array([value.encode()], np.object_)
    return InferInput(name, [1], "BYTES").set_data_from_numpy(array)


def flag(name, value=True):
    return InferInput(name, [1], "BOOL").set_data_from_numpy(np.array([value]))


def start(server, prompt, *inputs, sampling=None, model="tiny"):
    client, results = InProcessClient(server), []
    client.start_stream(lambda result, error: results.append(result or error))
    given = list(inputs) if prompt is None else [texts("text_input", prompt), *inputs]
    if sampling is not None:
        given.append(texts("sampling_parameters", json.dumps(sampling)))
    client.async_stream_infer(model, given)
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


def failed(results):
    return any(hasattr(each, "message") for each in results)


def count_of(results, name):
    return sum(int(each.as_numpy(name)[0]) for each in results)


def eventually(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


ALONE = flag("exclude_input_in_output")
COUNTS = tuple(flag(f"return_num_{each}_tokens") for each in ("input", "output", "cached"))


def test_the_folder_of_the_backend_is_registered():
    assert (tritonpy_backend_folders()["llamacpp"] / "model.py").is_file()


def test_a_gguf_file_needs_no_configuration(add, serve):
    add("tiny")
    with serve() as server:
        config = server.engine.model_config("tiny")
        assert config.backend == "llamacpp"
        assert config.model_transaction_policy.decoupled
        assert {"text_input", "tokenize_request"} <= {each.name for each in config.input}
        assert text_of(ask(server, "hi ", sampling=WORD)) in {"hi yes", "hi no"}


def test_streams_have_the_same_text_and_all_counts(add, serve):
    add("tiny")
    limit = {"temperature": 0, "max_tokens": 300, "ignore_eos": True}
    with serve() as server:
        reason = flag("return_finish_reason")
        whole = ask(server, "abc", ALONE, reason, *COUNTS, sampling=limit)
        stream = ask(server, "abc", flag("stream"), reason, *COUNTS, sampling=limit)
    assert len(whole) == 1
    assert len(stream) > 1
    assert text_of(stream) == text_of(whole)
    for results in (whole, stream):
        assert count_of(results, "num_output_tokens") == 300
        assert int(results[-1].as_numpy("num_input_tokens")[0]) == 4  # with the token of the start
        assert results[-1].as_numpy("finish_reason")[0] == b"length"
    assert {each.as_numpy("finish_reason")[0] for each in stream[:-1]} == {b"None"}


def test_the_prefix_of_an_earlier_prompt_is_cached(add, serve):
    add("tiny")
    with serve() as server:
        for cached in (0, 5):
            results = ask(server, "again", ALONE, *COUNTS, sampling={"max_tokens": 1})
            assert int(results[-1].as_numpy("num_cached_tokens")[0]) == cached


def test_token_ids_are_prompts(add, serve):
    add("tiny")
    ids = [1, *(BYTES_AT + each for each in b"abc")]
    tokens = InferInput("input_ids", [4], "INT32").set_data_from_numpy(np.array(ids, np.int32))
    limit = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
    with serve() as server:
        of_text = ask(server, "abc", ALONE, sampling=limit)
        of_tokens = ask(server, None, tokens, ALONE, sampling=limit)
    assert text_of(of_tokens) == text_of(of_text)


def test_log_probabilities(add, serve):
    add("tiny")
    wanted = {**WORD, "logprobs": 2}
    with serve() as server:
        results = ask(
            server, "a", ALONE, flag("return_logprobs"), flag("return_cumulative_logprob"),
            sampling=wanted,
        )  # fmt: skip
    tokens = json.loads(results[0].as_numpy("logprobs")[0])
    chosen = [next(iter(each.values())) for each in tokens]
    assert "".join(each["decoded_token"] for each in chosen) == text_of(results)
    total = sum(each["logprob"] for each in chosen)
    assert results[0].as_numpy("cumulative_logprob")[0] == pytest.approx(total, rel=1e-4)


def test_the_output_obeys_a_schema(add, serve):
    add("tiny")
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "size": {"enum": ["S", "L"]}},
        "required": ["ok", "size"],
        "additionalProperties": False,
    }
    with serve() as server:
        for guide in ({"json": schema}, {"json": json.dumps(schema)}):
            text = text_of(ask(server, "a", ALONE, sampling={"structured_outputs": guide}))
            assert json.loads(text).keys() == {"ok", "size"}
        regex = {"structured_outputs": {"regex": "[0-9]{3}/[a-f]"}}
        assert text_of(ask(server, "a", ALONE, sampling=regex))[3] == "/"


def test_a_text_that_leaves_its_grammar_is_an_error(add, serve, tmp_path):
    folder = add("tiny")
    (folder / "model.gguf").unlink()
    write_model(folder / "model.gguf", has_space=False)
    guide = {"structured_outputs": {"choice": ["a b"]}}
    with serve() as server:
        for stream in (False, True):
            *_, last = ask(server, "x", flag("stream", stream), ALONE, sampling=guide)
            assert "cannot write what the grammar requires" in last.message()


@pytest.mark.parametrize(
    ("sampling", "text"),
    [
        ({"structured_outputs": {"json": {"type": "bogus"}}}, "Invalid type: bogus"),
        ({"structured_outputs": {"json": 3}}, "must be a JSON schema"),
        ({"structured_outputs": {"json": {}, "regex": "a"}}, "exactly one member"),
        ({"structured_outputs": {"structural_tag": "a"}}, "does not support structured_outputs"),
        ({"bad_words": ["a"]}, 'llama.cpp does not support bad_words = ["a"]'),
        ({"n": 2}, "llama.cpp does not support n = 2"),
        ({"temperature": "hot"}, 'invalid value of temperature: "hot"'),
        ({"lora_name": "x"}, "LoRA x is not supported, the model has none"),
        ({"stop": 3}, "stop must be a text or a list of texts, got 3"),
        ({"logit_bias": {"999999": 1.0}, "min_p": -3.0, "top_n_sigma": "x"}, "top_n_sigma"),
    ],
)
def test_what_the_engine_cannot_do_is_refused_by_name(add, serve, sampling, text):
    add("tiny")
    with serve() as server:
        assert text in message_of(ask(server, "a", sampling=sampling))


def test_a_prompt_beyond_the_context_is_refused(add, serve):
    add("tiny", {"context": 256})
    with serve() as server:
        text = message_of(ask(server, "x" * 600))
    assert "exceeds the available context size" in text


def test_adapters_change_their_own_requests_only(add, serve):
    add("tiny", adapters={"plain": 0.0, "loud": 40.0})
    limit = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}
    with serve() as server:
        without = text_of(ask(server, "abc", sampling=limit))
        plain = text_of(ask(server, "abc", sampling={**limit, "lora_name": "plain"}))
        loud = text_of(ask(server, "abc", sampling={**limit, "lora_name": "loud"}))
        assert plain == without != loud
        assert text_of(ask(server, "abc", sampling=limit)) == without
        text = message_of(ask(server, "abc", sampling={"lora_name": "none"}))
        assert "we currently support ['plain', 'loud']" in text


def test_texts_become_tokens_and_back(add, serve):
    add("tiny")

    def tokenize(server, **values):
        return json.loads(text_of(ask(server, None, texts("tokenize_request", json.dumps(values)))))

    with serve() as server:
        ids = [1, *(BYTES_AT + each for each in b"Hi")]
        assert tokenize(server, text="Hi")["tokens"] == ids
        assert tokenize(server, text="Hi", add_special_tokens=False)["tokens"] == ids[1:]
        assert tokenize(server, text="é")["pieces"][1:] == ["\ufffd", "\ufffd"]
        assert tokenize(server, tokens=ids[1:]) == {"text": "Hi"}


def test_embeddings_and_ranks_have_tasks_of_their_own(add, serve):
    add("tiny")
    add("embed", {"pooling": "mean"}, task("embed"))
    add("rank", config=task("rerank"))
    embedding = texts("embedding_request", json.dumps({"input": "abc"}))
    ranking = {"query": "a", "documents": ["a", "b", "ab"]}
    rank = texts("rerank_request", json.dumps(ranking))
    with serve() as server:
        vector = json.loads(text_of(ask(server, None, embedding, model="embed")))
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)
        assert len(json.loads(text_of(ask(server, None, rank, model="rank")))) == 3
        inputs = {
            name: {each.name for each in server.engine.model_config(name).input}
            for name in ("tiny", "embed", "rank")
        }
        own = {"text_input", "embedding_request", "rerank_request"}
        assert [inputs[name] & own for name in ("tiny", "embed", "rank")] == [
            {"text_input"},
            {"embedding_request"},
            {"rerank_request"},
        ]
        dimensions = {"input": "abc", "pooling_params": {"dimensions": [2]}}
        question = texts("embedding_request", json.dumps(dimensions))
        assert "does not support dimensions" in message_of(
            ask(server, None, question, model="embed")
        )


def test_a_cancelled_request_ends_at_its_next_token(add, serve):
    add("tiny", {"parallel": 1})
    with serve() as server:
        client, results = start(server, "a", flag("stream"), sampling=FOREVER)
        eventually(lambda: results)
        waiting, refused = start(server, "b", sampling=WORD)
        client.stop_stream(cancel_requests=True)
        waiting.stop_stream()
    assert text_of(refused) in {"byes", "bno"}
    assert results[-1].message() == "Request was cancelled"


def has_engine(process):
    with contextlib.suppress(psutil.Error):
        return any("xllamacpp" in each.path for each in process.memory_maps())
    return False


def test_a_killed_worker_fails_its_streams_and_restarts(add, serve):
    add("tiny", {"parallel": 1})
    with serve() as server:
        [worker] = filter(has_engine, psutil.Process().children(recursive=True))
        started = [start(server, "a", flag("stream"), sampling=FOREVER) for _ in range(30)]
        eventually(lambda: any(results for _, results in started))
        worker.kill()
        for client, _ in started:
            client.stop_stream()
        assert any(failed(results) for _, results in started)  # those that the worker had
        eventually(lambda: not failed(ask(server, "b", sampling=WORD)))
        assert text_of(ask(server, "b", sampling=WORD)) in {"byes", "bno"}


def test_more_requests_than_run_at_a_time_are_all_answered(add, serve):
    add("tiny", {"parallel": 2})
    with serve() as server:
        started = [start(server, f"{number} ", sampling=WORD) for number in range(12)]
        for client, _ in started:
            client.stop_stream()
    for number, (_, results) in enumerate(started):
        assert text_of(results) in {f"{number} yes", f"{number} no"}


def test_the_figures_of_the_engine_are_metrics(add, serve):
    both = 'parameters { key: "REPORT_CUSTOM_METRICS" value { string_value: "true" } }'
    add("tiny", config=both)
    with serve() as server:
        ask(server, "abc", sampling={"max_tokens": 5, "ignore_eos": True})

        def values():
            return {
                (family.name, each.labels.get("finished_reason")): each
                for family in server.engine.custom_metrics()
                for each in family.metrics
            }

        eventually(lambda: ("vllm:request_success_total", "length") in values())
        found = values()
        for prefix in ("nv_generation_", "vllm:"):
            assert found[f"{prefix}prompt_tokens_total", None].value == 4
            assert found[f"{prefix}generation_tokens_total", None].value == 5
            assert found[f"{prefix}num_requests_running", None].value == 0
            assert found[f"{prefix}time_to_first_token_seconds", None].histogram.count == 1
        assert not any("kv_cache_usage_perc" in name for name, _ in found)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"contex": 3}, "unknown setting 'contex'. Did you mean 'context'?"),
        ({"context": "big"}, "'context' must be a number, got \"big\""),
        ({"parallel": 0}, "'parallel' must be at least 1"),
        ({"task": "embed"}, "unknown setting 'task'"),
        ({"pooling": "max"}, "'pooling' must be one of mean, cls, last, got 'max'"),
        ({"model": "../../other.gguf"}, "names '../../other.gguf', which is outside of"),
        ({"model": "other.gguf"}, "names 'other.gguf', which does not exist in"),
    ],
)
def test_faulty_settings_fail_the_load_with_their_name(add, serve, settings, text):
    add("tiny", settings)
    with serve(control={"mode": "explicit"}) as server:
        with pytest.raises(TritonError) as failed:
            server.engine.load_model("tiny")
        assert text in str(failed.value)


def test_an_unknown_task_fails_the_load(add, serve):
    add("tiny", config=task("sing"))
    refused = pytest.raises(TritonError, match="'task' must be one of generate, embed, rerank")
    with serve(control={"mode": "explicit"}) as server, refused:
        server.engine.load_model("tiny")


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"hello", "is no GGUF file"), (b"GGUF but broken", "llama.cpp cannot load")],
)
def test_a_broken_file_fails_the_load(add, serve, content, text):
    path = add("tiny") / "model.gguf"
    path.unlink()
    path.write_bytes(content)
    with serve(control={"mode": "explicit"}) as server:
        with pytest.raises(TritonError) as failed:
            server.engine.load_model("tiny")
        assert text in str(failed.value)
