from __future__ import annotations

import pytest

from tritonpy_frontend_processes.model_ids import ModelIdDecoder, ModelIdEncoder
from tritonpy_ipc import ProtocolError


def test_a_model_id_is_announced_once() -> None:
    encoder, decoder = ModelIdEncoder(), ModelIdDecoder()
    encoder.begin()
    number = encoder.number("m", -1)
    assert encoder.number("m", -1) == number
    assert encoder.number("m", 2) != number
    decoder.learn(encoder.new_ids())
    encoder.announced()
    assert decoder.get(number) == ("m", -1)
    assert encoder.number("m", -1) == number
    assert encoder.new_ids() == {}


def test_unsent_ids_are_announced_again() -> None:
    encoder = ModelIdEncoder()
    encoder.begin()
    encoder.number("m", 1)
    assert encoder.new_ids() == encoder.new_ids() != {}


def test_the_number_of_ids_is_bounded() -> None:
    encoder, decoder = ModelIdEncoder(), ModelIdDecoder()
    for count in range(10_000):
        encoder.begin()
        number = encoder.number(f"m{count}", -1)
        decoder.learn(encoder.new_ids())
        encoder.announced()
        assert decoder.get(number) == (f"m{count}", -1)
    assert len(encoder._numbers) <= 4096
    assert len(decoder._model_ids) <= 4096


def test_an_unknown_id_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="never announced"):
        ModelIdDecoder().get(3)
    with pytest.raises(ProtocolError, match="malformed"):
        ModelIdDecoder().learn({"model_ids": [[1]]})
