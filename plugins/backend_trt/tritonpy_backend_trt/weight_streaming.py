"""Weight streaming: weights in host memory that are copied to the GPU during execution."""

from __future__ import annotations

from typing import Any

from tritonpy import Internal, InvalidArgument, ModelContext
from tritonpy_backend_trt.logger import collect_errors, last_error


def stream_weights(engine: Any, budget: int | str | None, model: ModelContext) -> None:
    """Keep `budget` bytes of the streamable weights on the GPU; None keeps all of them.

    `auto` lets TensorRT choose. Call it before the first execution context is created. Raises
    `InvalidArgument` for an engine built without weight streaming, `Internal` if TensorRT rejects
    the budget.
    """
    if budget is None:
        return
    size = engine.streamable_weights_size
    if not size:
        raise InvalidArgument(
            f"unable to load model '{model.name}', parameter 'weight_streaming_budget' is set, "
            "but the engine has no weights that "
            "can be streamed: build it with trtexec --allowWeightStreaming"
        )
    wanted = (
        engine.get_weight_streaming_automatic_budget()
        if isinstance(budget, str)
        else min(budget, size)
    )
    with collect_errors() as errors:
        engine.weight_streaming_budget_v2 = wanted
    if engine.weight_streaming_budget_v2 != wanted:
        raise Internal(
            f"unable to set the weight streaming budget to {wanted} bytes: {last_error(errors)}"
        )
    model.log.info("keeping %d of %d bytes of streamable weights on the GPU", wanted, size)
