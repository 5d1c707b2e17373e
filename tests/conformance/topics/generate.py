"""`generate` and `generate_stream`: JSON to tensors and parameters, responses to JSON or events."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Http, post, topic
from tests.conformance.model_source import keys
from tests.conformance.topics.decoupled import SENDING, STREAMED, UNANSWERED, UNSOUND

WAYS = ("generate", "generate_stream")
UNENDED = {
    "sending": UNANSWERED,
    "sending_decoupled": {"returns", "sends without the flag and returns"},
}
"""What the real Triton 2.51 never ends."""
LARGE = 2**63
INPUTS: dict[str, Any] = {
    "nothing": {},
    "a string": {"PROMPT": "hello"},
    "an empty string": {"PROMPT": ""},
    "unicode": {"PROMPT": "größe ✓ \U0001f600"},
    "a zero character": {"PROMPT": "a\0b"},
    "a string in an array": {"PROMPT": ["hello"]},
    "a string in two arrays": {"PROMPT": [["hello"]]},
    "two strings where one fits": {"PROMPT": ["a", "b"]},
    "two strings in an array of one": {"PROMPT": [["a", "b"]]},
    "a number as string": {"PROMPT": 1},
    "nothing as string": {"PROMPT": None},
    "an object as string": {"PROMPT": {}},
    "an array with a number as string": {"PROMPT": ["a", 1]},
    "a deep array with a number as string": {"PROMPT": [["a", ["b", 1]]]},
    "no strings": {"PROMPT": []},
    "an array of no strings": {"PROMPT": [[]]},
    "true": {"STREAM": True},
    "false in an array": {"STREAM": [False]},
    "a number as truth": {"STREAM": 1},
    "text as truth": {"STREAM": "true"},
    "nothing as truth": {"STREAM": None},
    "two words": {"WORDS": ["a", "b"]},
    "four words": {"WORDS": ["a", "b", "c", "d"]},
    "three words": {"WORDS": ["a", "b", "c"]},
    "words in rows": {"WORDS": [["a", "b"], ["c", "d"]]},
    "a pair": {"PAIR": [1, -2]},
    "half a pair": {"PAIR": 1},
    "two pairs": {"PAIR": [1, 2, 3, 4]},
    "a pair in arrays": {"PAIR": [[1], [2]]},
    "a pair in one of two arrays": {"PAIR": [[1, 2], []]},
    "a pair in one array": {"PAIR": [[1, 2]]},
    "two empty arrays": {"PAIR": [[], []]},
    "a pair of large numbers": {"PAIR": [LARGE - 1, -LARGE]},
    "a number too large": {"PAIR": [1, LARGE]},
    "a fraction as integer": {"PAIR": [1, 2.5]},
    "a whole fraction as integer": {"PAIR": [1, 2.0]},
    "text as integer": {"PAIR": ["1", "2"]},
    "truth as integer": {"PAIR": [True, False]},
    "a grid": {"GRID": [1, 2, 3, 4, 5, 6]},
    "a grid in rows": {"GRID": [[1, 2, 3], [4, 5, 6]]},
    "a grid of twelve": {"GRID": list(range(12))},
    "a grid of five": {"GRID": list(range(5))},
    "one row": {"ROWS": [1, 2.5, -3]},
    "two rows": {"ROWS": [1, 2, 3, 4, 5, 6]},
    "rows of four": {"ROWS": [1, 2, 3, 4]},
    "integers as floats": {"ROWS": [1, 2, LARGE * 2 - 1]},
    "text as floats": {"ROWS": ["1", "2", "3"]},
    "truth as floats": {"ROWS": [True, True, True]},
    "two open dimensions": {"OPEN": [1, 2, 3, 4, 5, 6]},
    "an odd number for two open dimensions": {"OPEN": [1, 2, 3]},
    "integers that wrap": {"OPEN": [32768, -32769]},
    "halves": {"HALF": [1, 2]},
    "brains": {"BRAIN": [1, 2]},
    "three brains": {"BRAIN": [1, 2, 3]},
    "several inputs": {"PAIR": [1, 2], "STREAM": True, "PROMPT": "p"},
    "an array of objects": {"PAIR": [{}, {"a": 1}]},
    "the first error of two": {"STREAM": 3, "PROMPT": 4},
}
PARAMETERS: dict[str, Any] = {
    "every kind": {"s": "text", "i": -5, "b": True, "f": 0.5, "empty": ""},
    "large integers": {"a": LARGE - 1, "b": -LARGE},
    "nested": {"PROMPT": "p", "parameters": {"temperature": 0.5, "top_k": 3, "stop": "."}},
    "nested inputs": {"parameters": {"PROMPT": "p", "PAIR": [1, 2]}},
    "on both levels": {"PROMPT": "p", "max_tokens": 7, "parameters": {"PAIR": [1, 2], "seed": 1}},
    "none nested": {"PROMPT": "p", "parameters": {}},
    "an input on both levels": {"PROMPT": "p", "parameters": {"PROMPT": "q"}},
    "an input on both levels, nested first": {"parameters": {"PROMPT": "q"}, "PROMPT": "p"},
    "twice nested": {"parameters": {"parameters": {"a": 1}}},
    "twice nested text": {"parameters": {"parameters": "text"}},
    "nested as text": {"parameters": "text"},
    "nested as number": {"parameters": 1},
    "nested as nothing": {"parameters": None},
    "nested as an array": {"parameters": [{"a": 1}]},
    "nested error": {"parameters": {"PAIR": "text"}},
    "nested misfit": {"parameters": {"PAIR": 1}},
    "an array": {"key": [1]},
    "an empty array": {"key": []},
    "an object": {"key": {"a": 1}},
    "nothing": {"key": None},
    "a nested array": {"parameters": {"key": [1]}},
    "a nested object": {"parameters": {"key": {}}},
    "names of the infer request": {
        "sequence_id": 5, "sequence_start": True, "sequence_end": True, "priority": 3, "timeout": 7,
        "binary_data_output": True, "triton_enable_empty_final_response": True,
    },
    "members of the infer request": {"inputs": "x", "outputs": "y", "model_name": "z", "model_version": 3},
    "an empty name": {"": 1},
    "unicode": {"schlüssel": "größe ✓"},
    "id": {"id": "an id", "PROMPT": "p"},
    "id with quotes": {"id": '"strange" id ✓'},
    "empty id": {"id": ""},
    "id as number": {"id": 5},
    "id as nothing": {"id": None},
    "id as array": {"id": ["a"]},
    "nested id": {"parameters": {"id": "nested"}},
    "a wrong id before a wrong input": {"PAIR": "x", "id": 5},
}  # fmt: skip
BODIES = {
    "empty": b"",
    "spaces": b"  \n ",
    "no JSON": b"hello",
    "half an object": b'{"PROMPT":',
    "an object and more": b'{"PROMPT":"a"} x',
    "a comma too many": b'{"PROMPT":"a",}',
    "an array": b'[{"PROMPT":"a"}]',
    "text": b'"PROMPT"',
    "a number": b"5",
    "nothing": b"null",
    "truth": b"true",
    "no UTF-8": b'{"PROMPT":"\xff"}',
    "a lone surrogate": b'{"PROMPT":"\\ud800"}',
    "a surrogate pair": b'{"PROMPT":"\\ud83d\\ude00"}',
    "no numbers": b'{"ROWS":[NaN,Infinity,-Infinity]}',
    "a number that is too big": b'{"ROWS":[1e400,1,1]}',
    "a number that is too big for its type": b'{"ROWS":[1e39,1,1]}',
    "an input twice": b'{"PROMPT":"a","PROMPT":"b"}',
    "an input twice with an id": b'{"id":"7","PROMPT":"a","PROMPT":"b"}',
    "an id twice": b'{"id":"7","id":"8","give":"nothing"}',
    "parameters twice": b'{"parameters":{"PROMPT":"a"},"parameters":{"PAIR":[1,2]}}',
    "spaces between": b' {\n"PROMPT" :\t"a" } ',
}
BATCHED: dict[str, Any] = {
    "one": {"PROMPT": "a"},
    "one in an array": {"PROMPT": ["a"]},
    "three": {"PROMPT": ["a", "b", "c"]},
    "too many": {"PROMPT": list("abcde")},
    "none": {"PROMPT": []},
    "a row": {"PROMPT": "a", "ROWS": [1, 2, 3]},
    "two rows": {"PROMPT": ["a", "b"], "ROWS": [1, 2, 3, 4, 5, 6]},
    "two rows for one": {"PROMPT": "a", "ROWS": [1, 2, 3, 4, 5, 6]},
    "an open dimension beside the batch": {"PROMPT": "a", "OPEN": [1, 2, 3, 4, 5]},
    "an open dimension for two": {"PROMPT": ["a", "b"], "OPEN": [1, 2, 3, 4]},
    "without what it needs": {"ROWS": [1, 2, 3]},
}
KEYWORDS: dict[str, Any] = {
    "parameters as an input": {"parameters": 1},
    "parameters as an object": {"parameters": {"a": 1}},
    "without parameters": {"id": "both"},
    "id as a number": {"id": 1},
    "id nested in what is an input": {"parameters": {"id": "x"}},
}
GZIP = ("Content-Encoding", "gzip")
CODES = (
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
)


def generated(
    document: Any, model: str = "generating", way: str = "generate", **options: Any
) -> Http:
    """Return the request; a document that is not bytes is sent as JSON."""
    return post(f"/v2/models/{model}/{way}", document, **options)


def generate(name: str, document: Any, model: str = "generating", **options: Any) -> Exchange:
    """Return the exchange that requests a single response and events."""
    return Exchange(name, tuple(generated(document, model, way, **options) for way in WAYS))


def sends(name: str, actions: list[Any], model: str) -> Exchange:
    """Return the exchange with a model that follows a plan."""
    timeout_s = 3.0 if name in UNENDED[model] else 10.0
    return generate(
        f"{model}: {name}", {"PLAN": json.dumps(actions), "id": "plan"}, model, timeout_s=timeout_s
    )


def counted(name: str, document: Any, model: str, requests: int = 2) -> Exchange:
    return Exchange(name, generate(name, document, model).steps, {model: requests})


def paths() -> list[Exchange]:
    """Return the exchanges about paths, methods and headers."""
    body = json.dumps({"PROMPT": "p"}).encode()
    model = "/v2/models/generating"
    at = {
        "a version": f"{model}/versions/1/generate",
        "an unknown version": f"{model}/versions/7/generate",
        "a version beyond all numbers": f"{model}/versions/99999999999999999999/generate",
        "no version": f"{model}/versions//generate",
        "a version that is text": f"{model}/versions/one/generate",
        "an unknown model": "/v2/models/not_there/generate",
        "a query": f"{model}/generate?a=b",
        "a slash more": f"{model}/generate/",
        "a letter more": f"{model}/generates",
        "no model": "/v2/models//generate",
        "no model at all": "/v2/models/generate",
    }
    both_ways = {
        f"path: {name}": (path, path.replace("/generate", "/generate_stream"))
        for name, path in at.items()
    }
    return [
        *(
            Exchange(name, tuple(Http(path, body) for path in two))
            for name, two in both_ways.items()
        ),
        *(
            Exchange(
                f"method: {method}", tuple(Http(f"{model}/{way}", b"", method) for way in WAYS)
            )
            for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")
        ),
        Exchange(
            "method: GET of an unknown model", (Http("/v2/models/not_there/generate", b"", "GET"),)
        ),
        *(
            generate(
                f"encoding: {encoding}", {"PROMPT": "p"}, headers=(("Content-Encoding", encoding),)
            )
            for encoding in ("identity", "gzip", "deflate", "br", "GZIP", "gzip, identity")
        ),
        generate(
            "encoding: gzip of an unknown model", {"PROMPT": "p"}, "not_there", headers=(GZIP,)
        ),
        generate("encoding: gzip of what is no JSON", b"hello", headers=(GZIP,)),
        generate("accepted encoding", {"PROMPT": "p"}, headers=(("Accept-Encoding", "gzip"),)),
        generate("content type", {"PROMPT": "p"}, headers=(("Content-Type", "text/plain"),)),
        generate(
            "length of a header",
            {"PROMPT": "p"},
            headers=(("Inference-Header-Content-Length", "3"),),
        ),
        generate(
            "load metrics without such metrics",
            {"PROMPT": "p"},
            headers=(("Endpoint-Load-Metrics-Format", "text"),),
        ),
    ]


TOPIC = topic(
    "generate",
    "generating generating_batch generating_keyword sending sending_decoupled repeat square",
    [
        *(generate(f"input: {name}", document) for name, document in INPUTS.items()),
        *(generate(f"parameters: {name}", document) for name, document in PARAMETERS.items()),
        *(generate(f"body: {name}", document) for name, document in BODIES.items()),
        *(generate(f"batched: {name}", document, "generating_batch") for name, document in BATCHED.items()),
        *(generate(f"keyword: {name}", document, "generating_keyword") for name, document in KEYWORDS.items()),
        *(generate(f"output: {name}", {"give": name, "id": "out"}) for name in keys("generating", "GIVEN")),
        *(generate(f"error: {code}", {"error": code}) for code in CODES),
        generate("error: raised", {"raise": "on purpose", "id": "r"}),
        *paths(),
        *(sends(name, actions, "sending") for name, actions in SENDING.items() if name not in UNSOUND),
        *(sends(name, actions, "sending_decoupled") for name, actions in {**SENDING, **STREAMED}.items()),
        counted("decoupled: three answers", {"IN": [4, 2, 0], "id": "three"}, "repeat"),
        counted("decoupled: one answer", {"IN": 4}, "repeat"),
        counted("decoupled: one answer of an array", {"IN": [4]}, "repeat"),
        generate("decoupled: empty array", {"IN": []}, "repeat"),
        generate("decoupled: no input", {}, "repeat"),
        counted("decoupled: a batch of one", {"IN": 3}, "square"),
        counted("decoupled: a batch of one without answers", {"IN": 0}, "square"),
        generate("decoupled: a batch of two", {"IN": [3, 1]}, "square"),
    ],
)  # fmt: skip
