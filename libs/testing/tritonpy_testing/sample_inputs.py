"""Random inputs that fit a model configuration."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.config import DATATYPE_OF_NUMBER, DataType
from tritonpy_protos.model_config_pb2 import ModelConfig

Array = npt.NDArray[Any]
VARIABLE = 3  # size of a dimension of -1


def random_inputs(config: ModelConfig, random: Random, rows: int = 1) -> dict[str, Array]:
    """Return small values for every input of `config`.

    They have `rows` rows if the model has a batch dimension.
    """
    batch = (rows,) if config.max_batch_size > 0 else ()
    result = {}
    for item in config.input:
        shape = (*batch, *(VARIABLE if dim == -1 else dim for dim in item.dims))
        result[item.name] = random_array(DATATYPE_OF_NUMBER[item.data_type], random, shape)
    return result


def random_array(kind: DataType, random: Random, shape: tuple[int, ...]) -> Array:
    """Return small values of one data type: whole numbers, booleans, or short byte strings."""
    size = int(np.prod(shape, dtype=np.int64))
    if kind.name == "BYTES":
        array = np.empty(size, np.object_)
        array[:] = [random.randbytes(random.randrange(6)) for _ in range(size)]
        return array.reshape(shape)
    top = 2 if kind.name == "BOOL" else 100
    return (
        np.array([random.randrange(top) for _ in range(size)], np.int64)
        .astype(kind.dtype)
        .reshape(shape)
    )
