"""Names of POSIX shared-memory objects, as clients send them."""

from __future__ import annotations

import _posixshmem  # type: ignore[import-not-found]  # in the standard library, but without a stub
import os

from tritonpy_types.errors import Internal, InvalidArgument

_RESERVED = "triton_python_backend_shm_region_"


def check_key(name: str, key: str) -> None:
    """Raise InvalidArgument if the region `name` may not be registered with `key`.

    The key must not be empty or reserved for Triton's backends.
    """
    bare = key.lstrip("/")
    if not bare:
        raise InvalidArgument(
            f"cannot register shared memory region '{name}' - invalid shm key '{key}'"
        )
    if bare.startswith(_RESERVED):
        raise InvalidArgument(
            f"cannot register shared memory region '{name}' with key '{key}' as the key contains "
            "the reserved prefix "
            f"'{_RESERVED}'"
        )


def open_object(key: str) -> int:
    """Return the descriptor of the object `key`, for reading and writing; the caller closes it.

    The C library looks for objects in one folder. A key with a slash inside fails, and so does a
    link. Raises Internal.
    """
    try:
        return int(_posixshmem.shm_open(key, os.O_RDWR, mode=0))
    except (OSError, ValueError):  # ValueError: a null byte inside
        raise Internal(f"Unable to open shared memory region: '{key}'") from None
