"""Request bodies and headers of gRPC clients."""

from __future__ import annotations

from tritonpy_frontend_grpc.wire.message_frames import prefix
from tritonpy_protos import SERVICE

HEADERS = {b"host": b"x", b"content-type": b"application/grpc", b"te": b"trailers", b"user-agent": b"test"}


def path_of(name: str) -> str:
    """Return the path of a method of the inference service, or of another one where `name` is a path."""
    return name if name.startswith("/") else f"/{SERVICE}/{name}"


def frame(message: bytes, compressed: int = 0) -> bytes:
    """Return the frame of a message."""
    return prefix(message, compressed) + message


def headers_of(
    changes: dict[str, bytes | None], metadata: tuple[tuple[bytes, bytes], ...]
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a call with `changes`: `_` stands for `-`, None removes a header."""
    changed = {name.replace("_", "-").encode(): value for name, value in changes.items()}
    kept = [(key, value) for key, value in {**HEADERS, **changed}.items() if value is not None]
    return [*kept, *metadata]
