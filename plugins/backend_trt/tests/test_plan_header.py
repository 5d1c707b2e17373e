from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_trt.plan_header import (
    HEADER_SIZE,
    Version,
    plan_error,
    plan_version,
    version_hint,
)

from .simulated.plans import header

OLD = Version(8, 6, 1, 6)


def test_a_valid_plan_has_no_error_and_contains_its_version():
    assert plan_error(header(OLD)) is None
    assert plan_version(header(OLD)) == OLD
    assert str(OLD) == "8.6.1.6"


def test_an_unknown_layout_is_left_to_tensorrt_and_names_no_version():
    assert plan_error(header(layout=1)) is None
    assert plan_version(header(layout=1)) is None


@pytest.mark.parametrize(
    ("header", "meaning"),
    [
        (b"\x08\x07\x12\x07pytorch", "an ONNX model"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"ptrt" + bytes(24), "build it again"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"<html>", "it begins with b'<htm', but a TensorRT plan begins with b'ftrt'"),
        (b"", "truncated: 0 bytes"),
        (b"ft", "truncated: 2 bytes"),
        (header()[:-1], "truncated: 27 bytes"),
    ],
)
def test_foreign_files_are_identified(header, meaning):
    assert meaning in plan_error(header)


@given(st.binary(max_size=2 * HEADER_SIZE))
def test_arbitrary_bytes_are_a_plan_or_have_an_error(header):
    problem = plan_error(header)
    assert (problem is None) == (header.startswith(b"ftrt") and len(header) >= HEADER_SIZE)


def test_a_plan_of_the_installed_version_has_no_hint():
    assert version_hint(Version(11, 4, 0, 106), "11.4.0.106", False) == ""
    assert (
        version_hint(Version(11, 4, 0, 99), "11.4.0.106", False) == ""
    )  # builds of one version are compatible
    assert version_hint(None, "11.4.0.106", False) == ""


def test_a_plan_of_another_version_has_a_hint():
    text = version_hint(OLD, "11.4.0.106", False)
    assert "the plan was built with TensorRT 8.6.1.6, but 11.4.0.106 is installed" in text
    assert "install TensorRT 8.6.1" in text
    assert "'version-compatible'" in text
    assert "'version-compatible'" not in version_hint(OLD, "11.4.0.106", True)
