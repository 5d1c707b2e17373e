"""Compile inference/*.proto into tritonpy_protos: one descriptor set and a typing stub per file.

Run `python protos/generate.py` after a change of a .proto file (it needs grpcio-tools) and commit
the generated files.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "inference"
PACKAGE = HERE / "tritonpy_protos"
FILES = ("model_config.proto", "grpc_service.proto")
DESCRIPTOR_SET = "inference.binpb"

# protoc's stubs are for top-level modules and a lenient checker; these are for a package and strict
# mypy
STUB_EDITS = (
    ("import model_config_pb2", "from tritonpy_protos import model_config_pb2"),
    ("from typing import ClassVar", "from typing import Any as _Any, ClassVar"),
    ("_Mapping]", "_Mapping[str, _Any]]"),
    ("**kwargs)", "**kwargs: _Any)"),
)


def build(target: Path) -> list[Path]:
    """Write the descriptor set and the stubs into the folder `target` and return their paths.

    Raises RuntimeError if the compiler rejects a file, after the compiler has printed the reason.
    """
    with tempfile.TemporaryDirectory() as stubs:
        outputs = [f"--descriptor_set_out={target / DESCRIPTOR_SET}", f"--pyi_out={stubs}"]
        if (
            protoc.main(
                ["protoc", f"--proto_path={SOURCES}", "--include_imports", *outputs, *FILES]
            )
            != 0
        ):
            raise RuntimeError(f"protoc rejected a file in {SOURCES}; its message is above")
        written = [target / DESCRIPTOR_SET]
        for stub in sorted(Path(stubs).glob("*.pyi")):
            written.append(target / stub.name)
            written[-1].write_text(edit_stub(stub.read_text()))
    return written


def edit_stub(text: str) -> str:
    """Return protoc's stub with imports from the package and with complete types."""
    for before, after in STUB_EDITS:
        text = text.replace(before, after)
    return text


if __name__ == "__main__":
    for path in build(PACKAGE):
        sys.stdout.write(f"wrote {path}\n")
