from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import signing_key
from tritonpy_agent_sealed.sealing import AGENT, seal


@pytest.fixture
def key(keys):
    return signing_key(keys.at("signing.pem"))


def test_a_configuration_that_names_agents_already_stays_as_it_is(key, source, tmp_path):
    text = f"# mine\n{AGENT}\n"
    (source / "config.pbtxt").write_text(text)
    seal(source, tmp_path / "m", key, None)
    assert (tmp_path / "m" / "config.pbtxt").read_text() == text


def test_a_model_without_configuration_cannot_say_that_it_is_sealed(key, source, tmp_path):
    (source / "config.pbtxt").unlink()
    with pytest.raises(InvalidArgument, match=r"has no config\.pbtxt"):
        seal(source, tmp_path / "m", key, None)


def test_nothing_is_written_over(key, source, tmp_path):
    (tmp_path / "m").mkdir()
    with pytest.raises(InvalidArgument, match="/m is there already"):
        seal(source, tmp_path / "m", key, None)


def test_it_says_how_many_files_there_are(key, source, tmp_path):
    assert seal(source, tmp_path / "m", key, None) == 4
