"""Options of a load, as plain values that can be sent to client processes."""

from __future__ import annotations

from typing import Literal

import msgspec

from tritonpy import StartupError


class BadUsage(StartupError):
    """An invalid command line, or an invalid file that it names. The exit status is 2."""


class LoadLevel(msgspec.Struct, frozen=True):
    """How much load to send.

    In a closed loop, `value` is the number of requests in flight. With any other `arrivals`, it is
    the number of requests per second; `intervals` takes them from the file
    `LoadOptions.request_intervals`. Equal seeds give equal Poisson arrivals.
    """

    value: float
    arrivals: Literal["closed", "constant", "poisson", "intervals"] = "closed"
    seed: int = 1

    @property
    def open_loop(self) -> bool:
        """Whether requests start when they are due instead of when a response arrives."""
        return self.arrivals != "closed"


class LoadOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What requests are sent to which server, and on which connections.

    The names are those of perf_analyzer's flags.
    """

    model: str
    model_version: str = ""
    url: str = ""
    protocol: Literal["http", "grpc"] = "http"
    batch: int = 1
    request_intervals: str | None = None
    request_count: int = 0
    warmup_request_count: int = 0
    client_processes: int = 1
    max_in_flight: int = 512
    connections: int = 0
    seed: int = 1
    input_data: tuple[str, ...] = ("random",)
    shape: tuple[tuple[str, tuple[int, ...]], ...] = ()
    string_length: int = 128
    string_data: str | None = None
    request_parameter: tuple[tuple[str, str | int | float | bool], ...] = ()
    input_tensor_format: Literal["auto", "binary", "json"] = "auto"
    output_tensor_format: Literal["auto", "binary", "json"] = "auto"
    shared_memory: Literal["none", "system"] = "none"
    output_shared_memory_size: int = 102_400
    num_of_sequences: int = 4
    sequence_length: int | None = None
    sequence_length_variation: float = 20.0
    sequence_id_range: tuple[int, int | None] = (1, None)
    streaming: bool = False
    grpc_compression_algorithm: Literal["none", "gzip", "deflate"] = "none"
    headers: tuple[tuple[str, str], ...] = ()
    ssl_grpc_use_ssl: bool = False
    ssl_grpc_root_certifications_file: str | None = None
    ssl_grpc_private_key_file: str | None = None
    ssl_grpc_certificate_chain_file: str | None = None
    ssl_https_verify_peer: int = 1
    ssl_https_verify_host: int = 2
    ssl_https_ca_certificates_file: str | None = None
    ssl_https_client_certificate_file: str | None = None
    ssl_https_private_key_file: str | None = None
