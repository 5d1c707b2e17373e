"""The classes of models."""

from __future__ import annotations

from tritonpy_tritonserver_api.model import Model
from tritonpy_tritonserver_api.names import ModelBatchFlag, ModelTxnPropertyFlag

__all__ = ["Model", "ModelBatchFlag", "ModelTxnPropertyFlag"]
