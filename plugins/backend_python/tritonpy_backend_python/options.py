"""Options of the backend, in server.yaml (`backends: {python: {…}}`) or in `--backend-config`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Options
from tritonpy.config import ByteSize

_IGNORED = "A Triton option, accepted without effect: shared memory grows as needed."


class PythonOptions(Options, frozen=True):
    """Options of the backend `python`.

    Parameters of a model override the limits (see `limits.py`).
    """

    execution_limit_seconds: Annotated[
        float,
        msgspec.Meta(
            ge=0,
            description=(
                "A worker whose execute() takes longer is killed and restarted; "
                "its requests get an error (0: no limit)."
            ),
        ),
    ] = 0.0
    memory_limit: Annotated[
        ByteSize,
        msgspec.Meta(
            ge=0,
            description=(
                "Memory that a worker may allocate before it gets a MemoryError (0: no limit)."
            ),
        ),
    ] = 0
    environments_dir: Annotated[
        str,
        msgspec.Meta(
            description=(
                "Folder of models' environments (default: tritonpy/environments in the user's "
                "cache)."
            )
        ),
    ] = ""
    shm_default_byte_size: Annotated[int, msgspec.Meta(description=_IGNORED)] = 0
    shm_growth_byte_size: Annotated[int, msgspec.Meta(description=_IGNORED)] = 0
    shm_region_prefix_name: Annotated[str, msgspec.Meta(description=_IGNORED)] = ""
    shm_message_queue_size: Annotated[int, msgspec.Meta(description=_IGNORED)] = 0
    stub_timeout_seconds: Annotated[
        int,
        msgspec.Meta(
            description=(
                "A Triton option, accepted without effect: initialization has no time limit."
            )
        ),
    ] = 0
    thread_pool_size: Annotated[
        int,
        msgspec.Meta(
            description=(
                "A Triton option, accepted without effect: calls between models need no thread."
            )
        ),
    ] = 0
