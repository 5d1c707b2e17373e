"""Completion of configurations in the server's process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tritonpy import InstanceContext, Internal, ModelContext
from tritonpy.config import config_from_json, config_to_dict
from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.model_modules import LocalCode
from tritonpy_backend_python.in_process.printer import Printer
from tritonpy_worker import host as hosts
from tritonpy_worker.completion import complete
from tritonpy_worker.failure import describe_error

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def auto_complete(model: ModelContext, prints_to_log: bool = True) -> ModelConfig:
    """Return the configuration after `auto_complete_config`.

    Raises `Internal` from the model's exception, with the same text as a worker.
    """
    host = LocalHost(model, InstanceContext(model.name, "CPU", 0, 0))
    printer = Printer(host)
    code: LocalCode | None = None
    try:
        with hosts.using(host):
            code = LocalCode(model, host, printer.builtins() if prints_to_log else {})
            completed = complete(code.load(), model.name, json.dumps(config_to_dict(model.config)))
    except BaseException as error:
        raise Internal(describe_error(error)) from error
    finally:
        printer.end_line()
        if code is not None:
            code.close()
        host.close()
    return config_from_json(completed, f"auto_complete_config of model '{model.name}'")
