"""The messages and enums of model_config.proto; the stub next to this file has their types."""

from __future__ import annotations

from tritonpy_protos._pool import module_names

globals().update(module_names("model_config.proto", __name__))
