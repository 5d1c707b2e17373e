"""Weights that stay in the host's memory and travel to the GPU while an engine runs."""

from __future__ import annotations

from typing import Any

from tritonpy import Internal, InvalidArgument, ModelContext
from tritonpy_backend_trt.logger import listening, reason


def stream_weights(engine: Any, budget: int | str | None, model: ModelContext) -> None:
    """Leave `budget` bytes of the streamable weights on the GPU, or as many as TensorRT thinks fit (`auto`); None leaves all there.

    Before the first execution context. Raises InvalidArgument for an engine that was not built for it, Internal where TensorRT refuses.
    """
    if budget is None:
        return
    size = engine.streamable_weights_size
    if not size:
        raise InvalidArgument(
            f"unable to load model '{model.name}', parameter 'weight_streaming_budget' is given and the engine has no weights that "
            "could be streamed: build it with trtexec --allowWeightStreaming"
        )
    wanted = engine.get_weight_streaming_automatic_budget() if isinstance(budget, str) else min(budget, size)
    with listening() as errors:
        engine.weight_streaming_budget_v2 = wanted
    if engine.weight_streaming_budget_v2 != wanted:
        raise Internal(f"unable to set the weight streaming budget to {wanted} bytes: {reason(errors)}")
    model.log.info("%d of %d bytes of streamable weights stay on the GPU", wanted, size)
