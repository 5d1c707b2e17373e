"""server.yaml as frozen structs, and the public names for it and for model configurations.

Start at `server` (server.yaml); model configurations are the library `tritonpy_config`. The
modules import each other and the libraries; plugins import the names below from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy_config.completion import merge_auto_complete
    from tritonpy_config.config_dict import config_to_dict
    from tritonpy_config.model_files import resolve_model_file
    from tritonpy_config.model_fit import (
        called_model,
        control_inputs,
        dims_misfit,
        model_dims,
        needed_steps,
        set_dims,
        unable_to_load,
    )
    from tritonpy_config.model_json import config_from_json
    from tritonpy_config.model_text import read_config_text
    from tritonpy_config.normalization import normalize
    from tritonpy_config.parameters import (
        MOST_THREADS,
        parameter_bool,
        parameter_bytes,
        parameter_choice,
        parameter_int,
        parameter_threads,
        parse_byte_size,
    )
    from tritonpy_config.server import ServerConfig, decode_server_config
    from tritonpy_config.server.expectation import ByteSize, description
    from tritonpy_config.server.invalid_server_config import InvalidServerConfig
    from tritonpy_config.server.option_decoder import BOOLEANS, decode_options
    from tritonpy_config.server.relative_paths import anchor_paths
    from tritonpy_config.server.sections import (
        DeviceSettings,
        parse_resource,
        read_lenient_quantiles,
    )
    from tritonpy_config.server.server_config import RepositorySettings
    from tritonpy_config.server.server_yaml import read_server_yaml
    from tritonpy_config.tuning import DEFAULT_SETTING, SearchDimension, thread_counts
    from tritonpy_types import DATATYPE_OF_NUMBER, DataType, datatype_of, shape_text

__all__ = [
    "BOOLEANS",
    "DATATYPE_OF_NUMBER",
    "DEFAULT_SETTING",
    "MOST_THREADS",
    "ByteSize",
    "DataType",
    "DeviceSettings",
    "InvalidServerConfig",
    "RepositorySettings",
    "SearchDimension",
    "ServerConfig",
    "anchor_paths",
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
    "read_lenient_quantiles",
    "read_server_yaml",
    "resolve_model_file",
    "set_dims",
    "shape_text",
    "thread_counts",
    "unable_to_load",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy_config.completion": ("merge_auto_complete",),
        "tritonpy_config.config_dict": ("config_to_dict",),
        "tritonpy_config.model_files": ("resolve_model_file",),
        "tritonpy_config.model_fit": (
            "called_model",
            "control_inputs",
            "dims_misfit",
            "model_dims",
            "needed_steps",
            "set_dims",
            "unable_to_load",
        ),
        "tritonpy_config.model_json": ("config_from_json",),
        "tritonpy_config.model_text": ("read_config_text",),
        "tritonpy_config.normalization": ("normalize",),
        "tritonpy_config.parameters": (
            "MOST_THREADS",
            "parameter_bool",
            "parameter_bytes",
            "parameter_choice",
            "parameter_int",
            "parameter_threads",
            "parse_byte_size",
        ),
        "tritonpy_config.server": ("ServerConfig", "decode_server_config"),
        "tritonpy_config.server.expectation": ("ByteSize", "description"),
        "tritonpy_config.server.relative_paths": ("anchor_paths",),
        "tritonpy_config.server.server_config": ("RepositorySettings",),
        "tritonpy_config.server.server_yaml": ("read_server_yaml",),
        "tritonpy_config.server.invalid_server_config": ("InvalidServerConfig",),
        "tritonpy_config.server.option_decoder": ("BOOLEANS", "decode_options"),
        "tritonpy_config.server.sections": (
            "DeviceSettings",
            "parse_resource",
            "read_lenient_quantiles",
        ),
        "tritonpy_config.tuning": ("DEFAULT_SETTING", "SearchDimension", "thread_counts"),
        "tritonpy_types": ("DATATYPE_OF_NUMBER", "DataType", "datatype_of", "shape_text"),
    },
)
