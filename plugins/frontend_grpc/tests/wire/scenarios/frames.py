"""Bodies as clients send them."""

from __future__ import annotations

from tritonpy_frontend_grpc.wire.frames import prefix
from tritonpy_protos import SERVICE

HEADERS = {b"host": b"x", b"content-type": b"application/grpc", b"te": b"trailers", b"user-agent": b"test"}


def path_of(name: str) -> str:
    """Return the path of a method of the inference service, or of another one where `name` is a path."""
    return name if name.startswith("/") else f"/{SERVICE}/{name}"


def frame(message: bytes, packed: int = 0) -> bytes:
    """Return a message as it travels."""
    return prefix(message, packed) + message


def headers_of(
    changes: dict[str, bytes | None], metadata: tuple[tuple[bytes, bytes], ...]
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a call: `_` stands for `-`, None takes one away."""
    changed = {name.replace("_", "-").encode(): value for name, value in changes.items()}
    kept = [(key, value) for key, value in {**HEADERS, **changed}.items() if value is not None]
    return [*kept, *metadata]
