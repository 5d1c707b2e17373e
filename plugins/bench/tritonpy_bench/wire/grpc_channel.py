"""Channels of gRPC, from the options."""

from __future__ import annotations

from pathlib import Path

import grpc

from tritonpy_bench.options import BadUsage, BenchOptions


def grpc_target(options: BenchOptions) -> str:
    """Return the address as gRPC takes it."""
    text = options.url or "localhost:8001"
    for scheme in ("http://", "https://", "grpc://", "grpcs://"):
        text = text.removeprefix(scheme)
    return text if ":" in text else f"{text}:8001"


def channel_options(number: int) -> list[tuple[str, int]]:
    """Return the settings of one of several channels: each has a connection of its own, and messages may be of any size."""
    return [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
        ("tritonpy.bench.channel", number),
    ]


def channel_credentials(options: BenchOptions) -> grpc.ChannelCredentials | None:
    """Return what a TLS channel needs; None where none is wanted. Raises BadUsage for a file that cannot be read."""
    url = options.url or ""
    if not (options.ssl_grpc_use_ssl or url.startswith(("https://", "grpcs://"))):
        return None
    return grpc.ssl_channel_credentials(
        _content(options.ssl_grpc_root_certifications_file),
        _content(options.ssl_grpc_private_key_file),
        _content(options.ssl_grpc_certificate_chain_file),
    )


def compression_of(options: BenchOptions) -> grpc.Compression:
    """Return gRPC's name of a compression."""
    return {
        "none": grpc.Compression.NoCompression,
        "gzip": grpc.Compression.Gzip,
        "deflate": grpc.Compression.Deflate,
    }[options.grpc_compression_algorithm]


def metadata_of(options: BenchOptions) -> tuple[tuple[str, str | bytes], ...]:
    """Return the headers as gRPC sends them."""
    return tuple((name.lower(), value) for name, value in options.headers)


def _content(path: str | None) -> bytes | None:
    try:
        return None if path is None else Path(path).read_bytes()
    except OSError as error:
        raise BadUsage(f"the files of --ssl-grpc-… cannot be used: {error}") from error
