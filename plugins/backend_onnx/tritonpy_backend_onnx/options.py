"""Backend options for all models: `backends: {onnxruntime: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy_backend_kit.shared_model import BatchSizeOptions

Threads = Annotated[int, msgspec.Meta(ge=0)]


class OnnxOptions(BatchSizeOptions, frozen=True):
    """Options with the names that Triton's `--backend-config=onnxruntime,…` uses."""

    enable_global_threadpool: Annotated[
        bool,
        msgspec.Meta(
            description="All models share one thread pool, and thread counts of models are ignored."
        ),
    ] = False
    intra_op_thread_count: Annotated[
        Threads,
        msgspec.Meta(description="Intra-operator threads of the global pool (0: one per core)."),
    ] = 0
    inter_op_thread_count: Annotated[
        Threads,
        msgspec.Meta(description="Inter-operator threads of the global pool (0: one per core)."),
    ] = 0
    small_model_threads: Annotated[
        Threads | None,
        msgspec.Meta(
            description="Limit on the ONNX Runtime threads of all models of less than 1 MiB; "
            "further ones compute on the thread that"
            " executes them (default: 256, or the threads of 16 models)."
        ),
    ] = None
