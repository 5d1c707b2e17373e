from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_transformer.vocabulary import Vocabulary, read_vocabulary


def test_the_first_existing_file_is_read(tmp_path):
    (tmp_path / "source_vocabulary.json").write_text('["a", "b"]')
    assert read_vocabulary(tmp_path, "shared_vocabulary", "source_vocabulary").tokens == ["a", "b"]


def test_text_files_of_older_models_are_read(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("a\nb c\n", encoding="utf-8")
    assert read_vocabulary(tmp_path, "vocabulary").token_ids == {"a": 0, "b c": 1}


def test_token_ids_become_tokens():
    vocabulary = Vocabulary(["a", "b"])
    assert vocabulary.texts([1, 0, 1]) == ["b", "a", "b"]
    for number in (-1, 2):
        with pytest.raises(InvalidArgument) as caught:
            vocabulary.texts([0, number])
        assert caught.value.message == f"unknown token {number}: the model has tokens 0 to 1"


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(Unavailable, match="the vocabulary of the model is missing: no 'vocabulary"):
        read_vocabulary(tmp_path, "vocabulary")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "is not valid JSON"),
        ("{}", "is not a list of tokens"),
        ("[1]", "is not a list of tokens"),
    ],
)
def test_an_invalid_vocabulary_is_rejected(tmp_path, text, why):
    (tmp_path / "vocabulary.json").write_text(text)
    with pytest.raises(InvalidArgument, match=why):
        read_vocabulary(tmp_path, "vocabulary")
