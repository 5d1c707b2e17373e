"""Model configurations and server.yaml: parsing, completion, normalization, validation and output.

Start at `model_text` (config.pbtxt) and `server` (server.yaml). The modules import each other
directly and `types`; plugins import the names below from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.config.completion import merge_auto_complete
    from tritonpy.config.config_dict import config_to_dict
    from tritonpy.config.model_files import resolve_model_file
    from tritonpy.config.model_fit import (
        called_model,
        control_inputs,
        dims_misfit,
        model_dims,
        needed_steps,
        set_dims,
        shape_text,
        unable_to_load,
    )
    from tritonpy.config.model_json import config_from_json
    from tritonpy.config.model_text import read_config_text
    from tritonpy.config.normalization import normalize
    from tritonpy.config.parameters import (
        MOST_THREADS,
        parameter_bool,
        parameter_bytes,
        parameter_choice,
        parameter_int,
        parameter_threads,
    )
    from tritonpy.config.server import ServerConfig, decode_server_config
    from tritonpy.config.server.expectation import ByteSize, description, parse_byte_size
    from tritonpy.config.server.invalid_server_config import InvalidServerConfig
    from tritonpy.config.server.option_decoder import decode_options
    from tritonpy.config.server.sections import DeviceSettings, parse_resource
    from tritonpy.types import DATATYPE_OF_NUMBER, DataType, datatype_of

__all__ = [
    "DATATYPE_OF_NUMBER",
    "MOST_THREADS",
    "ByteSize",
    "DataType",
    "DeviceSettings",
    "InvalidServerConfig",
    "ServerConfig",
    "called_model",
    "config_from_json",
    "config_to_dict",
    "control_inputs",
    "datatype_of",
    "decode_options",
    "decode_server_config",
    "description",
    "dims_misfit",
    "merge_auto_complete",
    "model_dims",
    "needed_steps",
    "normalize",
    "parameter_bool",
    "parameter_bytes",
    "parameter_choice",
    "parameter_int",
    "parameter_threads",
    "parse_byte_size",
    "parse_resource",
    "read_config_text",
    "resolve_model_file",
    "set_dims",
    "shape_text",
    "unable_to_load",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.config.completion": ("merge_auto_complete",),
        "tritonpy.config.config_dict": ("config_to_dict",),
        "tritonpy.config.model_files": ("resolve_model_file",),
        "tritonpy.config.model_fit": (
            "called_model",
            "control_inputs",
            "dims_misfit",
            "model_dims",
            "needed_steps",
            "set_dims",
            "shape_text",
            "unable_to_load",
        ),
        "tritonpy.config.model_json": ("config_from_json",),
        "tritonpy.config.model_text": ("read_config_text",),
        "tritonpy.config.normalization": ("normalize",),
        "tritonpy.config.parameters": (
            "MOST_THREADS",
            "parameter_bool",
            "parameter_bytes",
            "parameter_choice",
            "parameter_int",
            "parameter_threads",
        ),
        "tritonpy.config.server": ("ServerConfig", "decode_server_config"),
        "tritonpy.config.server.expectation": ("ByteSize", "description", "parse_byte_size"),
        "tritonpy.config.server.invalid_server_config": ("InvalidServerConfig",),
        "tritonpy.config.server.option_decoder": ("decode_options",),
        "tritonpy.config.server.sections": ("DeviceSettings", "parse_resource"),
        "tritonpy.types": ("DATATYPE_OF_NUMBER", "DataType", "datatype_of"),
    },
)
