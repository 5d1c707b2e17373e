from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_frontend_grpc.message import parse_message
from tritonpy_protos.grpc_service_pb2 import ModelReadyRequest


@given(st.text(), st.text())
def test_a_message_round_trips(name, version):
    message = ModelReadyRequest(name=name, version=version)
    assert parse_message(ModelReadyRequest, message.SerializeToString()) == message


@pytest.mark.parametrize("raw", [b"\xff", b"\x0a\x05abc", b"\x0a\x02\xff\xfe"])
def test_invalid_bytes_and_utf8_are_refused(raw):
    with pytest.raises(InvalidArgument, match=f"its {len(raw)} bytes are not a message inference.ModelReadyRequest"):
        parse_message(ModelReadyRequest, raw)
