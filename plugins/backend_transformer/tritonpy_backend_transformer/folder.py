"""The folder of a converted model: which kind it is, its vocabularies and its tokenizer."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonpy import InvalidArgument, Unavailable, Unsupported, resolve_model_file
from tritonpy_backend_transformer.model_file import ModelFile, read_model_file
from tritonpy_backend_transformer.tokenizer import Tokenizer
from tritonpy_backend_transformer.vocabulary import Vocabulary, read_vocabulary

WEIGHTS = "model.bin"
DEFAULT_FILENAMES = ("model", WEIGHTS)


class Kind(enum.Enum):
    """What a model does; the values are the library's names for their formats."""

    DECODER = "TransformerDecoderSpec"
    ENCODER_DECODER = "TransformerSpec"
    ENCODER = "TransformerEncoderSpec"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model as it lies on disk; `source` and `target` are one vocabulary unless the model translates between two."""

    path: Path
    kind: Kind
    file: ModelFile
    settings: Mapping[str, Any]
    source: Vocabulary
    target: Vocabulary
    tokenizer: Tokenizer | None

    @property
    def positions(self) -> int | None:
        """How many tokens a text may have, None where the model has no table of positions."""
        scope = "encoder" if self.kind is Kind.ENCODER else "decoder"
        return self.file.dimension(f"{scope}/position_encodings/encodings", 0)

    @property
    def source_positions(self) -> int | None:
        """The same for what the encoder of an encoder-decoder model reads."""
        return self.file.dimension("encoder/position_encodings/encodings", 0)

    @property
    def width(self) -> int:
        """How many numbers a hidden state of an encoder has."""
        return (
            self.file.dimension("encoder/layer_norm/gamma", 0)
            or self.file.dimension("encoder/layer_0/ffn/layer_norm/gamma", 0)
            or self.file.dimension("encoder/layer_0/ffn/linear_1/weight", 0)
            or -1
        )

    @property
    def has_pooler(self) -> bool:
        """True where an encoder has a layer of its own that makes one vector of a text."""
        return "pooler_dense/weight" in self.file.weights

    @property
    def segments(self) -> bool:
        """True where an encoder is told which of two texts a token belongs to."""
        return "encoder/embeddings_1/weight" in self.file.weights

    def token(self, name: str) -> str | None:
        """Return a token that the model's config.json names, such as `eos_token`."""
        token = self.settings.get(name)
        return token if isinstance(token, str) else None


def find_folder(version_folder: Path, filename: str, model: str) -> Path:
    """Return the folder with model.bin: `filename` inside the version's folder, or that folder itself. Raises Unavailable where there is none."""
    named = resolve_model_file(filename or DEFAULT_FILENAMES[0], version_folder, version_folder.parent)
    for folder in (named, named.parent, version_folder):
        if folder.is_relative_to(version_folder.parent) and (folder / WEIGHTS).is_file():
            return folder
    raise Unavailable(
        f"unable to find '{named / WEIGHTS}' or '{version_folder / WEIGHTS}' for model instance '{model}':"
        " the folder must hold what CTranslate2's converter wrote"
    )


def read_folder(path: Path) -> ModelFolder:
    """Read everything but the weights. Raises Unavailable for what is missing, InvalidArgument for what is broken, Unsupported for another kind of model."""
    file = read_model_file(path / WEIGHTS)
    kind = next((kind for kind in Kind if kind.value == file.kind), None)
    if kind is None:
        raise Unsupported(
            f"'{path / WEIGHTS}' is a {file.kind}: the backend serves decoders, encoders and encoder-decoders of text"
        )
    if kind is Kind.ENCODER_DECODER:
        source = read_vocabulary(path, "shared_vocabulary", "source_vocabulary", "source_1_vocabulary")
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
        raise InvalidArgument(f"'{path}' is no JSON: {error}") from error
    return settings if isinstance(settings, dict) else {}


def _check_sizes(path: Path, kind: Kind, file: ModelFile, source: Vocabulary, target: Vocabulary) -> None:
    """The library reads beyond its tables where a vocabulary is larger than they are."""
    encoder = file.dimension("encoder/embeddings_0/weight", 0) or file.dimension("encoder/embeddings/weight", 0)
    decoder = file.dimension("decoder/embeddings/weight", 0)
    for rows, vocabulary in ((encoder, source), (decoder, target)):
        if rows is not None and rows != len(vocabulary):
            raise InvalidArgument(
                f"the vocabulary in '{path}' has {len(vocabulary)} tokens, the {kind.name.lower().replace('_', '-')} model {rows}:"
                " they belong to different models"
            )
