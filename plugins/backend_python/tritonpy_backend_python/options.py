"""What the backend is configured with, for all its models: `backends: {python: {…}}` of server.yaml, or `--backend-config=python,…`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import ByteSize, Options

_IGNORED = "Triton's: accepted and without effect, because shared memory grows as it is needed."


class PythonOptions(Options, frozen=True):
    """Options of the backend `python`. A model's own parameters override the limits (see `limits.py`)."""

    execution_limit_seconds: Annotated[
        float,
        msgspec.Meta(
            ge=0,
            description="A worker whose execute() takes longer is killed and started again, its requests are told why (0: no limit).",
        ),
    ] = 0.0
    memory_limit: Annotated[
        ByteSize,
        msgspec.Meta(ge=0, description="Memory that a worker may allocate before it gets a MemoryError (0: no limit)."),
    ] = 0
    environments_dir: Annotated[
        str,
        msgspec.Meta(
            description="Where environments of models are kept (default: tritonpy/environments in the user's cache)."
        ),
    ] = ""
    shm_default_byte_size: Annotated[int, msgspec.Meta(description=_IGNORED)] = 0
    shm_growth_byte_size: Annotated[int, msgspec.Meta(description=_IGNORED)] = 0
    shm_region_prefix_name: Annotated[str, msgspec.Meta(description=_IGNORED)] = ""
    shm_message_queue_size: Annotated[int, msgspec.Meta(description=_IGNORED)] = 0
    stub_timeout_seconds: Annotated[
        int,
        msgspec.Meta(description="Triton's: accepted and without effect, a worker may take its time to initialize."),
    ] = 0
    thread_pool_size: Annotated[
        int,
        msgspec.Meta(description="Triton's: accepted and without effect, calls between models need no thread here."),
    ] = 0
