"""The folder of a converted model: its kind, vocabularies and tokenizer."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonpy import InvalidArgument, Unavailable, Unsupported
from tritonpy.config import resolve_model_file
from tritonpy_backend_transformer.model_file import ModelFile, read_model_file
from tritonpy_backend_transformer.tokenizer import Tokenizer
from tritonpy_backend_transformer.vocabulary import Vocabulary, read_vocabulary

WEIGHTS = "model.bin"
DEFAULT_FILENAMES = ("model", WEIGHTS)


class FolderKind(enum.Enum):
    """The kind of a model; values are CTranslate2's names of the formats."""

    DECODER = "TransformerDecoderSpec"
    ENCODER_DECODER = "TransformerSpec"
    ENCODER = "TransformerEncoderSpec"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on disk. `source` and `target` are the same vocabulary unless the model has two."""

    path: Path
    kind: FolderKind
    file: ModelFile
    settings: Mapping[str, Any]
    source: Vocabulary
    target: Vocabulary
    tokenizer: Tokenizer | None

    @property
    def positions(self) -> int | None:
        """The maximum number of tokens in a text, or None if the model has no position table."""
        scope = "encoder" if self.kind is FolderKind.ENCODER else "decoder"
        return self.file.dimension(f"{scope}/position_encodings/encodings", 0)

    @property
    def source_positions(self) -> int | None:
        """The maximum number of tokens that an encoder-decoder model's encoder reads, or None."""
        return self.file.dimension("encoder/position_encodings/encodings", 0)

    @property
    def width(self) -> int:
        """The size of an encoder's hidden state."""
        return (
            self.file.dimension("encoder/layer_norm/gamma", 0)
            or self.file.dimension("encoder/layer_0/ffn/layer_norm/gamma", 0)
            or self.file.dimension("encoder/layer_0/ffn/linear_1/weight", 0)
            or -1
        )

    @property
    def has_pooler(self) -> bool:
        """True if an encoder has a pooler layer that computes one vector of a text."""
        return "pooler_dense/weight" in self.file.weights

    @property
    def segments(self) -> bool:
        """True if an encoder takes the segment that each token belongs to."""
        return "encoder/embeddings_1/weight" in self.file.weights

    def token(self, name: str) -> str | None:
        """Return the token that config.json names as `name`, such as `eos_token`, or None."""
        token = self.settings.get(name)
        return token if isinstance(token, str) else None


def find_folder(version_folder: Path, filename: str, model: str) -> Path:
    """Return the folder with model.bin: `filename` in the version folder, or that folder itself.

    Raises `Unavailable` if neither contains it.
    """
    named = resolve_model_file(
        filename or DEFAULT_FILENAMES[0], version_folder, version_folder.parent
    )
    for folder in (named, named.parent, version_folder):
        if folder.is_relative_to(version_folder.parent) and (folder / WEIGHTS).is_file():
            return folder
    raise Unavailable(
        f"unable to find '{named / WEIGHTS}' or '{version_folder / WEIGHTS}' for model instance "
        f"'{model}':"
        " the folder must contain the output of CTranslate2's converter"
    )


def read_folder(path: Path) -> ModelFolder:
    """Read everything except the weights.

    Raises `Unavailable` for missing files, `InvalidArgument` for damaged ones, and `Unsupported`
    for other kinds of models.
    """
    file = read_model_file(path / WEIGHTS)
    kind = next((kind for kind in FolderKind if kind.value == file.kind), None)
    if kind is None:
        raise Unsupported(
            f"'{path / WEIGHTS}' is a {file.kind}: the backend supports decoders, "
            "encoders and encoder-decoders of text"
        )
    if kind is FolderKind.ENCODER_DECODER:
        source = read_vocabulary(
            path, "shared_vocabulary", "source_vocabulary", "source_1_vocabulary"
        )
        shared = any((path / f"shared_vocabulary.{ending}").is_file() for ending in ("json", "txt"))
        target = source if shared else read_vocabulary(path, "target_vocabulary")
    else:
        source = target = read_vocabulary(path, "vocabulary")
    _check_sizes(path, kind, file, source, target)
    tokenizer = path / "tokenizer.json"
    return ModelFolder(
        path, kind, file, _settings(path / "config.json"), source, target,
        Tokenizer(tokenizer, source, target) if tokenizer.is_file() else None,
    )  # fmt: skip


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"'{path}' is not valid JSON: {error}") from error
    return settings if isinstance(settings, dict) else {}


def _check_sizes(
    path: Path, kind: FolderKind, file: ModelFile, source: Vocabulary, target: Vocabulary
) -> None:
    """Check the sizes of vocabularies: CTranslate2 reads beyond its tables if one is too large."""
    encoder = file.dimension("encoder/embeddings_0/weight", 0) or file.dimension(
        "encoder/embeddings/weight", 0
    )
    decoder = file.dimension("decoder/embeddings/weight", 0)
    for rows, vocabulary in ((encoder, source), (decoder, target)):
        if rows is not None and rows != len(vocabulary):
            raise InvalidArgument(
                f"the vocabulary in '{path}' has {len(vocabulary)} tokens, "
                f"but the {kind.name.lower().replace('_', '-')} model has {rows}:"
                " they belong to different models"
            )
