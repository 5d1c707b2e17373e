from __future__ import annotations

import json
import shutil

import pytest

from tritonpy import InvalidArgument, Unavailable, Unsupported
from tritonpy_backend_transformer.model_folder import FolderKind, find_folder, read_folder

from .tiny_models import TOKENS


@pytest.fixture
def copied(tmp_path, decoder):
    shutil.copytree(decoder[0], tmp_path / "model")
    return tmp_path / "model"


def test_a_model_is_in_a_subfolder_or_in_the_version_folder(tmp_path, copied):
    assert find_folder(tmp_path, "", "m") == copied
    assert find_folder(tmp_path, "model", "m") == copied
    assert find_folder(copied, "model.bin", "m") == copied
    assert find_folder(copied, "", "m") == copied


@pytest.mark.parametrize("filename", ["../../model", "..", "../.."])
def test_a_model_outside_its_folder_is_not_found(tmp_path, copied, filename):
    version = tmp_path / "m" / "1"
    shutil.copytree(copied, tmp_path, dirs_exist_ok=True)
    with pytest.raises((InvalidArgument, Unavailable)):
        find_folder(version, filename, "m")


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(Unavailable) as caught:
        find_folder(tmp_path, "", "m")
    assert caught.value.message.startswith(
        f"unable to find '{tmp_path}/model/model.bin' or '{tmp_path}/model.bin' for model instance 'm'"
    )


def test_metadata_of_a_folder(decoder, encoder, translator):
    found = {
        folder.kind: folder
        for folder in (read_folder(path) for path, _ in (decoder, encoder, translator))
    }
    assert set(found) == set(FolderKind)
    assert found[FolderKind.DECODER].positions == 96
    assert (found[FolderKind.ENCODER].positions, found[FolderKind.ENCODER].width) == (48, 32)
    assert (found[FolderKind.ENCODER].has_pooler, found[FolderKind.ENCODER].segments) == (
        True,
        True,
    )
    assert (
        found[FolderKind.ENCODER_DECODER].positions,
        found[FolderKind.ENCODER_DECODER].source_positions,
    ) == (64, 64)
    assert found[FolderKind.ENCODER_DECODER].source is found[FolderKind.ENCODER_DECODER].target
    assert found[FolderKind.DECODER].token("eos_token") == "</s>"
    assert found[FolderKind.DECODER].token("nothing") is None


def test_a_model_needs_no_tokenizer(copied):
    (copied / "tokenizer.json").unlink()
    assert read_folder(copied).tokenizer is None


def test_a_translator_may_have_two_vocabularies(tmp_path, translator):
    shutil.copytree(translator[0], tmp_path / "model")
    (tmp_path / "model" / "shared_vocabulary.json").rename(
        tmp_path / "model" / "source_vocabulary.json"
    )
    (tmp_path / "model" / "target_vocabulary.json").write_text(json.dumps(TOKENS))
    found = read_folder(tmp_path / "model")
    assert found.source is not found.target


def test_a_missing_vocabulary_is_reported(copied):
    (copied / "vocabulary.json").unlink()
    with pytest.raises(Unavailable, match="the vocabulary of the model is missing"):
        read_folder(copied)


def test_a_vocabulary_of_another_size_is_rejected(copied):
    (copied / "vocabulary.json").write_text(json.dumps(TOKENS[:-1]))
    with pytest.raises(
        InvalidArgument,
        match="has 260 tokens, but the decoder model has 261: they belong to different models",
    ):
        read_folder(copied)


def test_a_broken_config_is_rejected(copied):
    (copied / "config.json").write_text("{")
    with pytest.raises(InvalidArgument, match="' is not valid JSON"):
        read_folder(copied)


def test_a_model_of_another_kind_is_rejected(copied):
    data = (copied / "model.bin").read_bytes()
    (copied / "model.bin").write_bytes(
        data.replace(b"TransformerDecoderSpec", b"TransformerWhisperSpec")
    )
    with pytest.raises(
        Unsupported,
        match="is a TransformerWhisperSpec: the backend supports decoders, encoders and",
    ):
        read_folder(copied)
