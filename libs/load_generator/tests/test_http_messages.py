from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.wire.http_messages import HttpMessages

from .metadata import INTS, TEXT, model, options, target


def sent(description, job=None, binary=True, regions=None, **more):
    """Return the start line, headers, JSON and binary data of a request."""
    given = options(**more)
    messages = HttpMessages(
        target(description, binary), given, make_corpus(description, given), regions
    )
    job = job or Job(0)
    raw = b"".join(messages.message_for(job, 0).parts(job.sequence))
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert int(lines["Content-Length"]) == len(body)
    length = int(lines.get("Inference-Header-Content-Length", len(body)))
    return head.decode().split("\r\n")[0], lines, json.loads(body[:length]), body[length:]


def test_tensors_are_sent_as_bytes_if_the_server_supports_it():
    start, lines, document, tail = sent(
        model(INTS, TEXT), url="localhost:1234", headers=(("X-Key", "k"),)
    )
    assert start == "POST /v2/models/m/infer HTTP/1.1"
    assert (lines["Host"], lines["X-Key"]) == ("localhost:1234", "k")
    sizes = [each["parameters"]["binary_data_size"] for each in document["inputs"]]
    assert sum(sizes) == len(tail)
    assert sizes[0] == 12
    assert document["parameters"] == {"binary_data_output": True}


def test_tensors_are_sent_as_json_otherwise():
    _, _, document, tail = sent(
        model(INTS, TEXT), binary=False, input_data=("zero",), string_data="é"
    )
    assert tail == b""
    assert document == {
        "inputs": [
            {"name": "A", "datatype": "INT32", "shape": [3], "data": [0, 0, 0]},
            {"name": "T", "datatype": "BYTES", "shape": [2], "data": ["é", "é"]},
        ]
    }


@pytest.mark.parametrize(("given_", "expected"), [("json", None), ("auto", True), ("binary", True)])
def test_outputs_have_the_requested_form(given_, expected):
    document = sent(model(INTS), output_tensor_format=given_)[2]
    assert document.get("parameters", {}).get("binary_data_output") == expected


def test_names_are_quoted_and_versions_and_prefixes_kept():
    description = model(INTS)
    given = options(url="http://host:80/prefix/")
    named = target(type(description)("a b/c", "3", description.inputs, description.outputs))
    message = HttpMessages(named, given, make_corpus(description, given), None).message_for(
        Job(0), 0
    )
    assert message.head.startswith(
        b"POST /prefix/v2/models/a%20b%2Fc/versions/3/infer HTTP/1.1\r\n"
    )


@given(st.integers(1, 2**64 - 1), st.booleans(), st.booleans(), st.booleans())
def test_every_sequence_id_fits_its_field(number, start, end, binary):
    job = Job(0, number, start, end)
    document = sent(
        model(INTS), job, binary=binary, request_parameter=(("n", 18446744073709551615),)
    )[2]
    given = document["parameters"]
    assert (given["sequence_id"], given["sequence_start"], given["sequence_end"]) == (
        number,
        start,
        end,
    )
    assert given["n"] == 18446744073709551615


def test_large_tensors_are_not_copied_into_each_request():
    description = model(type(INTS)("A", "UINT8", (1 << 20,)))
    given = options()
    messages = HttpMessages(target(description), given, make_corpus(description, given), None)
    first, second = (
        messages.message_for(Job(0, number, start=False), 0).parts(number) for number in (1, 2)
    )
    assert first[1] is second[1]
    assert len(first[1]) == 1 << 20


def test_a_request_is_made_once():
    description, given = model(INTS), options()
    messages = HttpMessages(target(description), given, make_corpus(description, given), None)
    assert messages.message_for(Job(0), 0) is messages.message_for(Job(0), 5)
