from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import encryption_key, signing_key, verify_key
from tritonpy_agent_sealed.manifest import read_manifest
from tritonpy_agent_sealed.seal import AGENT, seal
from tritonpy_agent_sealed.unseal import unseal


@pytest.fixture
def key(keys):
    return signing_key(keys.at("signing.pem"))


def test_a_configuration_with_the_agent_is_unchanged(key, source, tmp_path):
    text = AGENT.replace("}", '} agents { name: "checksum" }', 1) + "\n"
    (source / "config.pbtxt").write_text(text)
    seal(source, tmp_path / "m", key, None)
    assert (tmp_path / "m" / "config.pbtxt").read_text() == text


def test_a_comment_about_agents_does_not_count(key, source, tmp_path):
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
        (b"max_batch_size: x", "is not a configuration"),
        (b"\xff", "is not a configuration"),
    ],
)
def test_a_configuration_without_the_agent_is_rejected(key, source, tmp_path, config, text):
    (source / "config.pbtxt").write_bytes(config)
    with pytest.raises(InvalidArgument, match=text):
        seal(source, tmp_path / "m", key, None)
    assert not (tmp_path / "m").exists()


def test_links_are_followed_and_empty_versions_are_kept(key, keys, source, tmp_path):
    (source / "1").rename(tmp_path / "outside")
    (source / "1").symlink_to(tmp_path / "outside")
    (source / "2").mkdir()
    assert seal(source, tmp_path / "m", key, encryption_key(keys.at("encryption.key"))) == 4
    manifest = read_manifest(tmp_path / "m", "m", [verify_key(keys.at("verify.pem"))])
    (tmp_path / "opened").mkdir()
    unseal(tmp_path / "m", tmp_path / "opened", manifest, [keys.at("encryption.key")])
    assert (tmp_path / "opened/1/model.onnx").read_bytes() == (
        tmp_path / "outside/model.onnx"
    ).read_bytes()
    assert (tmp_path / "opened/2").is_dir()


def test_broken_and_circular_links_are_rejected(key, source, tmp_path):
    (source / "2").symlink_to(source)
    with pytest.raises(InvalidArgument, match="/2 leads to one of its parent folders"):
        seal(source, tmp_path / "m", key, None)
    (source / "2").unlink()
    (source / "2").symlink_to(tmp_path / "nothing")
    with pytest.raises(InvalidArgument, match="/2 is not a file and does not lead to one"):
        seal(source, tmp_path / "m", key, None)
    assert not (tmp_path / "m").exists()


def test_configurations_are_not_encrypted(key, keys, source, tmp_path):
    (source / "configs").mkdir()
    (source / "configs/small.pbtxt").write_text("max_batch_size: 1")
    seal(source, tmp_path / "m", key, encryption_key(keys.at("encryption.key")))
    assert (tmp_path / "m/configs/small.pbtxt").read_text() == f"max_batch_size: 1\n{AGENT}\n"


def test_a_sealed_model_is_not_sealed_again(key, source, tmp_path):
    seal(source, tmp_path / "m", key, None)
    with pytest.raises(InvalidArgument, match=r"is sealed already: it has a sealed\.json"):
        seal(tmp_path / "m", tmp_path / "again", key, None)


def test_a_model_without_configuration_is_rejected(key, source, tmp_path):
    (source / "config.pbtxt").unlink()
    with pytest.raises(InvalidArgument, match=r"has no config\.pbtxt"):
        seal(source, tmp_path / "m", key, None)


def test_an_existing_target_is_rejected(key, source, tmp_path):
    (tmp_path / "m").mkdir()
    with pytest.raises(InvalidArgument, match="/m exists already"):
        seal(source, tmp_path / "m", key, None)


def test_seal_returns_the_number_of_files(key, source, tmp_path):
    assert seal(source, tmp_path / "m", key, None) == 4
