from __future__ import annotations

import json

import numpy as np
import pytest

VLLM = """
backend: "vllm"
model_transaction_policy { decoupled: true }
input { name: "text_input" data_type: TYPE_STRING dims: 1 optional: true }
input { name: "embedding_request" data_type: TYPE_STRING dims: 1 optional: true }
input { name: "return_num_input_tokens" data_type: TYPE_BOOL dims: 1 optional: true }
output { name: "text_output" data_type: TYPE_STRING dims: -1 }
output { name: "num_input_tokens" data_type: TYPE_UINT32 dims: 1 }
output { name: "num_output_tokens" data_type: TYPE_UINT32 dims: -1 }
"""
ENCODER = """
backend: "transformer"
max_batch_size: 8
input { name: "text_input" data_type: TYPE_STRING dims: 1 optional: true }
input { name: "input_ids" data_type: TYPE_INT64 dims: -1 optional: true }
output { name: "embedding" data_type: TYPE_FP32 dims: 2 }
"""


@pytest.fixture
def embed(engine):
    """Models whose vectors have the length of the text; `requests` are what they got."""
    engine.add("vllm", VLLM)
    engine.add("encoder", ENCODER)
    engine.requests = []

    def infer(request):
        engine.requests.append(request)
        request.owner = engine
        if "embedding_request" in request.inputs:
            wanted = json.loads(request.inputs["embedding_request"].strings()[0])
            size = wanted["pooling_params"].get("dimensions", [3])[0]
            outputs = {"text_output": json.dumps([float(len(wanted["input"]))] * size)}
        else:
            size = len(request.inputs["text_input"].strings()[0])
            outputs = {"embedding": np.array([[size, 0.5]], np.float32)}
        request.respond(engine._response(request, outputs, count=0, final=True))

    engine.infer = infer
    return engine


def test_the_openai_client_gets_embeddings(live, embed):
    made = live.client.embeddings.create(model="vllm", input=["a", "abc"], encoding_format="float")
    assert [each.embedding for each in made.data] == [[1.0] * 3, [3.0] * 3]
    assert [each.index for each in made.data] == [0, 1]
    assert (made.usage.prompt_tokens, made.usage.total_tokens) == (14, 14)
    # By default the client asks for base64 and decodes it.
    assert live.client.embeddings.create(model="encoder", input="ab").data[0].embedding == [2, 0.5]


def test_dimensions_and_token_ids_reach_the_model(live, embed):
    body = {"model": "vllm", "input": [5, 6], "dimensions": 2}
    reply = live.call("POST", "/v1/embeddings", body)
    assert reply.json["data"][0]["embedding"] == [2.0, 2.0]
    wanted = json.loads(embed.requests[0].inputs["embedding_request"].strings()[0])
    assert wanted == {"input": [5, 6], "pooling_params": {"dimensions": [2]}}


def test_an_encoder_has_no_token_counts(live, embed):
    reply = live.call("POST", "/v1/embeddings", {"model": "encoder", "input": "ab"})
    assert reply.json["usage"] is None
    assert embed.requests[0].inputs["text_input"].shape == (1, 1)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"model": "story", "input": "a"}, "has no embeddings"),
        ({"model": "other", "input": "a"}, "works with no text"),
        ({"model": "encoder", "input": "a", "dimensions": 1}, "vectors of one size"),
        ({"model": "vllm", "input": []}, "input must be"),
        ({"model": "vllm", "input": "a", "dimensions": 0}, "greater than or equal to 1"),
        ({"model": "vllm", "input": "a", "encoding_format": "x"}, "encoding_format"),
    ],
)
def test_an_invalid_request_is_an_error(live, embed, body, text):
    reply = live.call("POST", "/v1/embeddings", body)
    assert reply.status == 400
    assert text in reply.error["message"]
    assert embed.requests == []


def test_an_encoder_generates_no_text(live, embed):
    assert "generates no text" in live.chat(model="encoder").error["message"]


def test_models_with_embeddings_are_listed(live, embed):
    listed = [each["id"] for each in live.call("GET", "/v1/models").json["data"]]
    assert listed == ["story", "vllm", "encoder"]


def test_triton_embeds_with_the_vllm_backend_only(start, embed):
    triton = start(compat="triton")
    assert triton.call("POST", "/v1/embeddings", {"model": "encoder", "input": "a"}).json == {
        "detail": "TRT-LLM backend and Python backend do not support embedding requests"
    }
    several = triton.call("POST", "/v1/embeddings", {"model": "vllm", "input": ["a"]})
    assert several.status == 422
