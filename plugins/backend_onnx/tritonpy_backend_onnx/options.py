"""What the backend is configured with, for all its models: `backends: {onnxruntime: {…}}` of server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Options

Threads = Annotated[int, msgspec.Meta(ge=0)]


class OnnxOptions(Options, frozen=True):
    """Options of the backend, under the names that Triton's `--backend-config=onnxruntime,…` gives them."""

    enable_global_threadpool: Annotated[
        bool, msgspec.Meta(description="All models share one thread pool; their own thread counts are ignored.")
    ] = False
    intra_op_thread_count: Annotated[
        Threads, msgspec.Meta(description="Threads inside one operator, of the global pool (0: one per core).")
    ] = 0
    inter_op_thread_count: Annotated[
        Threads, msgspec.Meta(description="Threads between operators, of the global pool (0: one per core).")
    ] = 0
    small_model_threads: Annotated[
        Threads | None,
        msgspec.Meta(
            description="Threads of ONNX Runtime's that all models of less than 1 MiB have together; further ones compute on the thread that"
            " executes them (default: 256, or as many as 16 models have)."
        ),
    ] = None
    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(description="max_batch_size of a model that can batch and gives none (default: the server's)."),
    ] = None
