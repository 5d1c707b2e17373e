"""Short constructors for configurations and tensors."""

from __future__ import annotations

from google.protobuf import text_format

from tritonpy_backend_trt.signature import TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig


def config(text: str = "") -> ModelConfig:
    return text_format.Parse(f"name: 'm' {text}", ModelConfig())


def info(name: str, *dims: int, datatype: str = "FP32", output: bool = False, **more) -> TensorInfo:
    return TensorInfo(name, datatype, dims, not output, **more)
