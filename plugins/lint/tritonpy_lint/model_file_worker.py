"""The child process of `model_file_reader`: asks backends for the tensors of model files.

It reads one JSON value per line: first the options of the server, then one model per line. It
writes one line per model.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tritonpy import Engine, ModelContext, TritonError
from tritonpy.config import normalize
from tritonpy.plugins import Backends, make_plugin_manager
from tritonpy_protos.model_config_pb2 import ModelConfig


def main() -> None:
    """Answer every line of standard input on standard output, which frameworks cannot reach."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    setup = json.loads(sys.stdin.readline())
    if setup["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (setup["memory"], setup["memory"]))
    manager = make_plugin_manager(disable=setup["disable"])
    backends = Backends(manager, setup["backends"], setup["backend_defaults"])
    for line in sys.stdin:
        task = json.loads(line)
        print(
            json.dumps({"name": task["name"], **_reply(task, backends)}), file=replies, flush=True
        )


def _reply(task: Mapping[str, Any], backends: Backends) -> dict[str, str]:
    config = ModelConfig.FromString(bytes.fromhex(task["config"]))
    bare = ModelConfig(
        name=config.name,
        backend=config.backend,
        platform=config.platform,
        default_model_filename=config.default_model_filename,
        runtime=config.runtime,
    )
    reply: dict[str, str] = {}
    for key, given in (("signature", bare), ("completed", config)):
        try:
            completed = _completed(task, given, backends)
        except TritonError as error:
            reply["error"] = error.message
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}"
        else:
            if key == "completed" or completed.input or completed.output:
                reply[key] = completed.SerializeToString().hex()
    return reply


def _completed(task: Mapping[str, Any], config: ModelConfig, backends: Backends) -> ModelConfig:
    backend = backends.get(config.backend, config.runtime)
    folder, version = Path(task["folder"]), task["version"]
    context = ModelContext(
        name=config.name,
        version=version,
        config=normalize(config, (), backend.default_instance_count),
        directory=folder,
        path=folder / str(version),
        parameters={key: value.string_value for key, value in config.parameters.items()},
        output_types={},
        options=backends.options(config.backend, config.runtime),
        engine=cast("Engine", None),  # completing a configuration calls no model
        log=logging.LoggerAdapter(logging.getLogger("tritonpy.lint")),
    )
    try:
        return backend.auto_complete(context)
    finally:
        if context.shared is not None:
            backend.unload(context.shared)


if __name__ == "__main__":
    main()
