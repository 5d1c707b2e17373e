"""Completing a configuration in the server's own process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tritonpy import InstanceContext, Internal, ModelContext, config_from_json, config_to_dict
from tritonpy_backend_python.in_process.code import LocalCode
from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.printing import Printer
from tritonpy_worker import host as hosts
from tritonpy_worker.completion import complete
from tritonpy_worker.failure import describe

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def auto_complete(model: ModelContext, prints_to_log: bool = True) -> ModelConfig:
    """Return the configuration as `auto_complete_config` leaves it.

    Raises Internal with the text that a worker's failure has, from what the model raised.
    """
    host = LocalHost(model, InstanceContext(model.name, "CPU", 0, 0))
    printer = Printer(host)
    code: LocalCode | None = None
    try:
        with hosts.using(host):
            code = LocalCode(model, host, printer.builtins() if prints_to_log else {})
            completed = complete(code.load(), model.name, json.dumps(config_to_dict(model.config)))
    except BaseException as error:
        raise Internal(describe(error)) from error
    finally:
        printer.end_line()
        if code is not None:
            code.close()
        host.close()
    return config_from_json(completed, f"auto_complete_config of model '{model.name}'")
