"""The messages and enums of model_config.proto; their types are in the stub beside this file."""

from __future__ import annotations

from tritonpy_protos._pool import module_names

globals().update(module_names("model_config.proto", __name__))
