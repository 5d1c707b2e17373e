from __future__ import annotations

import hashlib

import pytest

from tritonpy import InvalidArgument, Unsupported
from tritonpy_agent_checksum.checksum import digest_of, parse_key


@pytest.mark.parametrize("written", ["MD5", "md5", "Md5"])
def test_algorithms_are_known_in_any_case(written):
    assert parse_key(f"{written}:1/model.onnx") == ("MD5", "1/model.onnx")


def test_a_path_may_have_colons():
    assert parse_key("SHA-256:a:b") == ("SHA-256", "a:b")


def test_a_key_without_a_colon_is_rejected():
    with pytest.raises(InvalidArgument, match=r"^failed to parse key: model\.onnx$"):
        parse_key("model.onnx")


def test_an_unknown_algorithm_is_named():
    with pytest.raises(Unsupported, match=r"^Unsupported checksum algorithm: crc32$"):
        parse_key("crc32:f")


@pytest.mark.parametrize(
    ("algorithm", "name"), [("MD5", "md5"), ("SHA-256", "sha256"), ("SHA256", "sha256")]
)
def test_digests_are_those_of_the_whole_file(tmp_path, algorithm, name):
    content = bytes(range(256)) * 5000
    (tmp_path / "f").write_bytes(content)
    assert digest_of(tmp_path / "f", algorithm) == hashlib.new(name, content).hexdigest()
