from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import encryption_key, signing_key, verify_key
from tritonpy_agent_sealed.manifest import read
from tritonpy_agent_sealed.opening import unseal
from tritonpy_agent_sealed.sealing import AGENT, seal


@pytest.fixture
def key(keys):
    return signing_key(keys.at("signing.pem"))


def test_a_configuration_that_names_agents_already_stays_as_it_is(key, source, tmp_path):
    text = AGENT.replace("}", '} agents { name: "checksum" }', 1) + "\n"
    (source / "config.pbtxt").write_text(text)
    seal(source, tmp_path / "m", key, None)
    assert (tmp_path / "m" / "config.pbtxt").read_text() == text


def test_a_word_about_agents_names_none(key, source, tmp_path):
    (source / "config.pbtxt").write_text("# no model_repository_agents\n")
    seal(source, tmp_path / "m", key, None)
    assert (tmp_path / "m" / "config.pbtxt").read_text().endswith(f"\n{AGENT}\n")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            b'model_repository_agents { agents { name: "checksum" } }',
            "names the repository agents checksum, but not 'sealed'",
        ),
        (b"max_batch_size: x", "is no configuration"),
        (b"\xff", "is no configuration"),
    ],
)
def test_a_configuration_that_would_not_open_the_model_is_refused_and_leaves_nothing(
    key, source, tmp_path, config, text
):
    (source / "config.pbtxt").write_bytes(config)
    with pytest.raises(InvalidArgument, match=text):
        seal(source, tmp_path / "m", key, None)
    assert not (tmp_path / "m").exists()


def test_links_are_followed_and_empty_versions_stay(key, keys, source, tmp_path):
    (source / "1").rename(tmp_path / "elsewhere")
    (source / "1").symlink_to(tmp_path / "elsewhere")
    (source / "2").mkdir()
    assert seal(source, tmp_path / "m", key, encryption_key(keys.at("encryption.key"))) == 4
    manifest = read(tmp_path / "m", "m", [verify_key(keys.at("verify.pem"))])
    (tmp_path / "opened").mkdir()
    unseal(tmp_path / "m", tmp_path / "opened", manifest, [keys.at("encryption.key")])
    assert (tmp_path / "opened/1/model.onnx").read_bytes() == (tmp_path / "elsewhere/model.onnx").read_bytes()
    assert (tmp_path / "opened/2").is_dir()


def test_links_to_nothing_and_in_a_circle_are_refused(key, source, tmp_path):
    (source / "2").symlink_to(source)
    with pytest.raises(InvalidArgument, match="/2 leads back to a folder that it lies in"):
        seal(source, tmp_path / "m", key, None)
    (source / "2").unlink()
    (source / "2").symlink_to(tmp_path / "nothing")
    with pytest.raises(InvalidArgument, match="/2 is no file, and leads to none"):
        seal(source, tmp_path / "m", key, None)
    assert not (tmp_path / "m").exists()


def test_every_configuration_can_be_read_before_there_is_a_key(key, keys, source, tmp_path):
    (source / "configs").mkdir()
    (source / "configs/small.pbtxt").write_text("max_batch_size: 1")
    seal(source, tmp_path / "m", key, encryption_key(keys.at("encryption.key")))
    assert (tmp_path / "m/configs/small.pbtxt").read_text() == f"max_batch_size: 1\n{AGENT}\n"


def test_a_sealed_model_is_not_sealed_again(key, source, tmp_path):
    seal(source, tmp_path / "m", key, None)
    with pytest.raises(InvalidArgument, match=r"is sealed already: it has a sealed\.json"):
        seal(tmp_path / "m", tmp_path / "again", key, None)


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
