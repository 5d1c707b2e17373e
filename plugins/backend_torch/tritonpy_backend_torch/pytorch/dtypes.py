"""Mapping between the protocol's data types and PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

TORCH_DTYPES: Mapping[str, Any] = {
    "BOOL": torch.bool, "UINT8": torch.uint8, "UINT16": torch.uint16, "UINT32": torch.uint32,
    "UINT64": torch.uint64,
    "INT8": torch.int8, "INT16": torch.int16, "INT32": torch.int32, "INT64": torch.int64,
    "FP16": torch.float16, "BF16": torch.bfloat16, "FP32": torch.float32, "FP64": torch.float64,
}  # fmt: skip
DATATYPE_NAMES: Mapping[Any, str] = {dtype: name for name, dtype in TORCH_DTYPES.items()}
