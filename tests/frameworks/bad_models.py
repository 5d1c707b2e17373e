"""Broken models, made from good ones."""

from __future__ import annotations

import base64
import json
import marshal
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import onnx


@dataclass(frozen=True)
class BadModel:
    """`act` breaks a copy of the good model's version folder.

    The load must fail with a text that matches every element of `says`.
    """

    good: str
    act: Callable[[Path], None]
    says: tuple[str, ...]
    config: str = ""


def truncated(name: str) -> Callable[[Path], None]:
    """Remove the second half of the file."""

    def act(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return act


def without(name: str) -> Callable[[Path], None]:
    """Remove a file or a folder."""

    def act(folder: Path) -> None:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink()

    return act


def replaced(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    """Replace bytes of the file, with the same length if the format stores lengths."""

    def act(folder: Path) -> None:
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new))

    return act


def member(
    archive: str, ending: str, change: Callable[[bytes], bytes | None]
) -> Callable[[Path], None]:
    """Change the matching files of a zip archive, or remove them if `change` returns None."""

    def act(folder: Path) -> None:
        path = folder / archive
        with zipfile.ZipFile(path) as old:
            content = {name: old.read(name) for name in old.namelist()}
        touched = [name for name in content if name.endswith(ending)]
        assert touched, sorted(content)
        with zipfile.ZipFile(path, "w") as new:
            for name, data in content.items():
                kept = change(data) if name in touched else data
                if kept is not None:
                    new.writestr(name, kept)

    return act


def nothing(_folder: Path) -> None:
    """Change nothing: the configuration is wrong instead."""


def onnx_opset(folder: Path) -> None:
    """Use an operator set that does not exist."""

    def change(model: onnx.ModelProto) -> None:
        model.opset_import[0].version = 999

    _edit_onnx(folder, change)


def onnx_custom_operator(folder: Path) -> None:
    """Add a node of a domain that is not registered."""

    def change(model: onnx.ModelProto) -> None:
        model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
        node = next(node for node in model.graph.node if node.op_type == "Relu")
        node.op_type, node.domain = "NoSuchOperator", "com.example"

    _edit_onnx(folder, change)


def onnx_without_its_weights(folder: Path) -> None:
    """Move the weights to a separate file and remove it."""
    model = onnx.load(folder / "model.onnx")
    onnx.save(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=1024,
    )
    (folder / "weights.bin").unlink()


def _edit_onnx(folder: Path, change: Callable[[onnx.ModelProto], None]) -> None:
    model = onnx.load(folder / "model.onnx")
    change(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())


class _ExecutesCode:
    """Creates a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> object:
        return os.mkdir, (str(self._marker),)


def marker(folder: Path) -> Path:
    """Return the folder that exists once the code of a bad model ran."""
    return folder / "executed"


def bare_pickle(name: str) -> Callable[[Path], None]:
    """Replace the file by a pickle that creates a folder."""

    def act(folder: Path) -> None:
        (folder / name).write_bytes(pickle.dumps(_ExecutesCode(marker(folder))))

    return act


def pickle_in_an_archive(name: str) -> Callable[[Path], None]:
    """Put such a pickle in a zip archive, as torch.save does."""

    def act(folder: Path) -> None:
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr(
                "archive/data.pkl", pickle.dumps(_ExecutesCode(marker(folder)), protocol=2)
            )
            archive.writestr("archive/byteorder", "little")
            archive.writestr("archive/version", "3\n")

    return act


def pickle_in_an_exported_program(folder: Path) -> None:
    """Replace every pickle inside the `.pt2`."""
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "archive/data.pkl", pickle.dumps(_ExecutesCode(marker(folder)), protocol=2)
        )
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/version", "3\n")
    member("model.pt2", ".pt", lambda _old: buffer.getvalue())(folder)


def keras_lambda(folder: Path) -> None:
    """Add a layer whose code is marshalled in the file."""

    def change(text: bytes) -> bytes:
        tree = json.loads(text)
        layer = next(
            layer for layer in tree["config"]["layers"] if layer["class_name"] == "Rescaling"
        )
        code = base64.b64encode(marshal.dumps(_code(marker(folder)))).decode()
        layer["class_name"] = "Lambda"
        layer["config"] = {
            "name": layer["config"]["name"],
            "trainable": True,
            "function": {
                "class_name": "__lambda__",
                "config": {"code": code, "defaults": None, "closure": None},
            },
            "arguments": {},
        }
        return json.dumps(tree).encode()

    member("model.keras", "config.json", change)(folder)


def _code(folder: Path) -> CodeType:
    made = compile(
        f"lambda x: (__import__('os').mkdir({str(folder)!r}), x)[1]", "lambda", "eval"
    ).co_consts
    return next(each for each in made if isinstance(each, CodeType))
