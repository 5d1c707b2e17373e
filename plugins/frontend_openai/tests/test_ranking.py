from __future__ import annotations

import json

import numpy as np
import pytest

RANKER = """
backend: "llamacpp"
input { name: "rerank_request" data_type: TYPE_STRING dims: 1 }
input { name: "return_num_input_tokens" data_type: TYPE_BOOL dims: 1 optional: true }
output { name: "text_output" data_type: TYPE_STRING dims: -1 }
output { name: "num_input_tokens" data_type: TYPE_UINT32 dims: 1 }
"""
ENCODER = """
backend: "transformer"
input { name: "text_input" data_type: TYPE_STRING dims: 1 }
output { name: "embedding" data_type: TYPE_FP32 dims: 3 }
"""
VECTORS = {"pets": [1, 0, 0], "A cat": [2, 1, 0], "Rain": [0, 0, 1], "nothing": [0, 0, 0]}


def rank(call):
    """The score of a document is its number of letters that the query has."""
    question = call.json["rerank_request"]
    scores = [sum(each in question["query"] for each in text) for text in question["documents"]]
    yield {"text_output": json.dumps(scores), "num_input_tokens": np.array([7], np.uint32)}


def embed(call):
    yield {"embedding": np.array(VECTORS[call.prompt], np.float32)}


@pytest.fixture(params=["ranker", "encoder"])
def model(request, engine):
    engine.add("ranker", RANKER)
    engine.add("encoder", ENCODER)
    engine.script = rank if request.param == "ranker" else embed
    return request.param


def post(live, path, **members):
    return live.call("POST", path, members)


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_documents_are_ranked_the_best_one_first(live, engine, model, path):
    documents = ["Rain", {"text": "A cat"}] if model == "encoder" else ["xyz", {"text": "pest"}]
    reply = post(live, path, model=model, query="pets", documents=documents)
    results = reply.json["results"]
    assert [each["index"] for each in results] == [1, 0]
    assert results[0]["document"]["text"] in {"A cat", "pest"}
    assert results[0]["relevance_score"] == pytest.approx(4 if model == "ranker" else 2 / 5**0.5)
    assert results[1]["relevance_score"] == 0
    assert reply.json["usage"] == (
        {"prompt_tokens": 7, "total_tokens": 7}
        if model == "ranker"
        else {"prompt_tokens": 0, "total_tokens": 0}
    )


def test_only_the_best_ones_without_their_texts(live, engine):
    engine.add("ranker", RANKER)
    engine.script = rank
    reply = post(
        live, "/rerank", model="ranker", query="ab", documents=["a", "ab", "x"], top_n=2,
        return_documents=False,
    )  # fmt: skip
    assert reply.json["results"] == [
        {"index": 1, "relevance_score": 2},
        {"index": 0, "relevance_score": 1},
    ]


def test_scores_of_one_text_with_several_and_of_pairs(live, engine, model):
    one, others = ("pets", ["A cat", "Rain"]) if model == "encoder" else ("ab", ["a", "x"])
    expected = [2 / 5**0.5, 0] if model == "encoder" else [1, 0]
    reply = post(live, "/score", model=model, text_1=one, text_2=others)
    assert [each["score"] for each in reply.json["data"]] == pytest.approx(expected)
    reply = post(live, "/v1/score", model=model, text_1=[one, one], text_2=others)
    assert [each["score"] for each in reply.json["data"]] == pytest.approx(expected)
    reply = post(live, "/score", model=model, text_1=one, text_2=others[0])
    assert [each["index"] for each in reply.json["data"]] == [0]


def test_a_vector_of_zeros_has_the_score_zero(live, engine):
    engine.add("encoder", ENCODER)
    engine.script = embed
    reply = post(live, "/score", model="encoder", text_1="pets", text_2="nothing")
    assert reply.json["data"][0]["score"] == 0


@pytest.mark.parametrize(
    ("path", "members", "text"),
    [
        ("/rerank", {"model": "ranker", "query": "a", "documents": []}, "documents"),
        ("/score", {"model": "ranker", "text_1": ["a", "b"], "text_2": ["a"]}, "as many as text_2"),
        ("/score", {"model": "ranker", "text_1": "a", "text_2": []}, "text_2 has 0"),
        (
            "/rerank",
            {"model": "story", "query": "a", "documents": ["b"]},
            "Model 'story' ranks nothing: it needs the input 'rerank_request', or embeddings",
        ),
        (
            "/rerank",
            {
                "model": "encoder",
                "query": "a",
                "documents": ["b"] * 3 + [str(n) for n in range(200)],
            },
            "max_choices",
        ),
    ],
)
def test_refusals(live, engine, path, members, text):
    engine.add("ranker", RANKER)
    engine.add("encoder", ENCODER)
    reply = post(live, path, **members)
    assert reply.status in {400, 404}
    assert text in reply.error["message"]


def test_ranking_models_are_listed_and_generate_nothing(live, engine):
    engine.add("ranker", RANKER)
    names = [each["id"] for each in live.call("GET", "/v1/models").json["data"]]
    assert "ranker" in names
    assert "generates no text" in live.chat(model="ranker").error["message"]
