from __future__ import annotations

import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

PROTOS = Path(__file__).resolve().parents[1]


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(PROTOS))
    import generate

    yield generate
    del sys.modules["generate"]


def test_committed_files_match_the_proto_files(generate, tmp_path: Path) -> None:
    for fresh in generate.build(tmp_path):
        committed = PROTOS / "tritonpy_protos" / fresh.name
        if fresh.suffix == ".binpb":
            parse = descriptor_pb2.FileDescriptorSet.FromString
            assert parse(committed.read_bytes()) == parse(fresh.read_bytes()), (
                "run `python protos/generate.py`"
            )
        else:
            assert committed.read_text() == fresh.read_text(), "run `python protos/generate.py`"


def test_every_stub_of_the_package_comes_from_the_build(generate, tmp_path: Path) -> None:
    built = {path.name for path in generate.build(tmp_path)}
    assert {path.name for path in (PROTOS / "tritonpy_protos").glob("*.pyi")} < built


def test_a_file_that_does_not_compile_is_an_error(
    generate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "model_config.proto").write_text('syntax = "proto3"; message {')
    monkeypatch.setattr(generate, "SOURCES", tmp_path)
    monkeypatch.setattr(generate, "FILES", ("model_config.proto",))
    with pytest.raises(RuntimeError, match="protoc rejected a file"):
        generate.build(tmp_path)
