from __future__ import annotations

import os

import pytest

from tritonpy.shared_memory.object_key import check_key, open_object
from tritonpy_testing import shared_object
from tritonpy_types.errors import Internal, InvalidArgument

RESERVED = "triton_python_backend_shm_region_"


@pytest.mark.parametrize("key", ["", "/", "///"])
def test_an_empty_key_is_refused(key):
    with pytest.raises(InvalidArgument) as refusal:
        check_key("r", key)
    assert (
        refusal.value.message
        == f"cannot register shared memory region 'r' - invalid shm key '{key}'"
    )


@pytest.mark.parametrize("key", [f"{RESERVED}1", f"/{RESERVED}", f"//{RESERVED}abc"])
def test_keys_reserved_for_triton_backends_are_refused(key):
    with pytest.raises(InvalidArgument) as refusal:
        check_key("r", key)
    assert refusal.value.message == (
        f"cannot register shared memory region 'r' with key '{key}' as the key contains the reserved prefix '{RESERVED}'"
    )


@pytest.mark.parametrize("slashes", ["", "/", "//"])
def test_leading_slashes_are_ignored(slashes):
    with shared_object(8) as memory:
        key = slashes + memory.key.lstrip("/")
        check_key("r", key)
        descriptor = open_object(key)
        os.close(descriptor)


@pytest.mark.parametrize(
    "key",
    [
        "not-there",
        "..",
        ".",
        "../shm/x",
        "/../../etc/passwd",
        "a/b",
        "\0",
        "a\0b",
        "x" * 5000,
        "/dev/shm/x",
    ],
)
def test_an_invalid_or_unknown_key_opens_nothing(key):
    with pytest.raises(Internal) as refusal:
        open_object(key)
    assert refusal.value.message == f"Unable to open shared memory region: '{key}'"


def test_a_key_does_not_follow_links(tmp_path):
    target = tmp_path / "secret"
    target.write_bytes(b"secret")
    with shared_object(8) as memory:
        link = f"{memory.key}-link"
        os.symlink(target, f"/dev/shm{link}")
        try:
            with pytest.raises(Internal, match="Unable to open shared memory region"):
                open_object(link)
        finally:
            os.unlink(f"/dev/shm{link}")
