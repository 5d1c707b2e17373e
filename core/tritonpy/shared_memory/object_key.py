"""Names of POSIX shared-memory objects, as clients give them."""

from __future__ import annotations

import _posixshmem  # type: ignore[import-not-found]  # of the standard library, and in no stub
import os

from tritonpy.errors import Internal, InvalidArgument

_RESERVED = "triton_python_backend_shm_region_"


def check_key(name: str, key: str) -> None:
    """Raise InvalidArgument where the region `name` may not be registered with `key`: no name at all, or one that belongs to Triton's backends."""
    bare = key.lstrip("/")
    if not bare:
        raise InvalidArgument(f"cannot register shared memory region '{name}' - invalid shm key '{key}'")
    if bare.startswith(_RESERVED):
        raise InvalidArgument(
            f"cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved prefix "
            f"'{_RESERVED}'"
        )


def open_object(key: str) -> int:
    """Return the descriptor of the object `key`, for reading and writing; it is the caller's to close.

    The C library looks for objects in their one place: a key with a slash inside leads nowhere, and so does a link. Raises Internal.
    """
    try:
        return int(_posixshmem.shm_open(key, os.O_RDWR, mode=0))
    except (OSError, ValueError):  # ValueError: a zero byte inside
        raise Internal(f"Unable to open shared memory region: '{key}'") from None
