from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_trt.plan import HEADER_BYTES, Version, advice, flaw_of, version_of

from .simulated.plans import header

OLD = Version(8, 6, 1, 6)


def test_a_plan_has_no_flaw_and_names_the_version_that_built_it():
    assert flaw_of(header(OLD)) is None
    assert version_of(header(OLD)) == OLD
    assert str(OLD) == "8.6.1.6"


def test_an_unknown_layout_is_left_to_tensorrt_and_names_no_version():
    assert flaw_of(header(layout=1)) is None
    assert version_of(header(layout=1)) is None


@pytest.mark.parametrize(
    ("beginning", "meaning"),
    [
        (b"\x08\x07\x12\x07pytorch", "an ONNX model"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"ptrt" + bytes(24), "build it again"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"<html>", "it begins with b'<htm' and a TensorRT plan with b'ftrt'"),
        (b"", "truncated: 0 bytes"),
        (b"ft", "truncated: 2 bytes"),
        (header()[:-1], "truncated: 27 bytes"),
    ],
)
def test_what_is_no_plan_is_told_apart(beginning, meaning):
    assert meaning in flaw_of(beginning)


@given(st.binary(max_size=2 * HEADER_BYTES))
def test_any_bytes_are_a_plan_or_have_a_flaw(beginning):
    flaw = flaw_of(beginning)
    assert (flaw is None) == (beginning.startswith(b"ftrt") and len(beginning) >= HEADER_BYTES)


def test_a_plan_of_the_installed_version_needs_no_advice():
    assert advice(Version(11, 4, 0, 106), "11.4.0.106", False) == ""
    assert advice(Version(11, 4, 0, 99), "11.4.0.106", False) == ""  # builds of one version read each other's
    assert advice(None, "11.4.0.106", False) == ""


def test_a_plan_of_another_version_is_to_be_built_again_or_trusted():
    text = advice(OLD, "11.4.0.106", False)
    assert "the plan was built with TensorRT 8.6.1.6, installed is 11.4.0.106" in text
    assert "install TensorRT 8.6.1" in text
    assert "'version-compatible'" in text
    assert "'version-compatible'" not in advice(OLD, "11.4.0.106", True)
