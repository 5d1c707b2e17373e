"""Reads the tensors of model files with their backends, in a child process.

A model file may crash its framework, take long, or need much memory. The child is stopped after a
time limit and started again for the next model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tritonpy.config import ServerConfig
from tritonpy_checks import LintModel
from tritonpy_checks.model_reader import ModelFileContent
from tritonpy_config.versions import version_folders, versions_to_load
from tritonpy_protos.model_config_pb2 import ModelConfig

SECONDS_PER_MODEL = 60.0


def read_model_files(
    models: Sequence[LintModel],
    server: ServerConfig,
    memory: int,
    progress: Callable[[str], None],
) -> dict[str, ModelFileContent]:
    """Return the contents of the models' files by name; a model that has no version is left out.

    `memory` limits the data of the child process, in bytes; 0 for no limit.
    """
    waiting = [task for model in models if (task := _task(model)) is not None]
    setup = {
        "backends": server.backends,
        "backend_defaults": server.backend_defaults,
        "disable": server.plugins.disable,
        "memory": memory,
    }
    found: dict[str, ModelFileContent] = {}
    while waiting:
        done = 0
        for name, content in _run_child(setup, waiting):
            found[name] = content
            done += 1
            progress(f"read the model file of {name} ({len(found)})")
        if done < len(waiting):  # this one ended the child, or took too long
            name = waiting[done]["name"]
            found.setdefault(
                name, ModelFileContent(error="the backend crashed or hung while it read the file")
            )
            done += 1
        waiting = waiting[done:]
    return found


def _task(model: LintModel) -> dict[str, Any] | None:
    if model.config is None or model.folder is None:
        return None
    versions, _ = versions_to_load(model.config, version_folders(model.files)[0])
    filename = model.config.default_model_filename
    if not versions or not model.has_file(f"{versions[-1]}/{filename}"):
        return None
    return {
        "name": model.name,
        "folder": str(model.folder.resolve()),
        "version": versions[-1],
        "config": model.config.SerializeToString().hex(),
    }


def _run_child(
    setup: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, ModelFileContent]]:
    """Yield the contents of the models in order, until the child ends or is too slow."""
    with subprocess.Popen(
        [sys.executable, "-m", "tritonpy_lint.model_file_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        text = b"\n".join(msgspec.json.encode(each) for each in [setup, *tasks])
        writer = threading.Thread(target=_write, args=(child.stdin, text), daemon=True)
        writer.start()
        try:
            for _ in tasks:
                watchdog = threading.Timer(SECONDS_PER_MODEL, child.kill)
                watchdog.start()
                line = child.stdout.readline() if child.stdout is not None else b""
                watchdog.cancel()
                if not line.endswith(b"\n"):
                    return
                yield _decoded(line)
        finally:
            child.kill()
            writer.join()


def _write(stream: Any, text: bytes) -> None:
    try:
        stream.write(text)
        stream.close()
    except OSError:  # the child has ended
        return


def _decoded(line: bytes) -> tuple[str, ModelFileContent]:
    reply = json.loads(line)

    def config(key: str) -> ModelConfig | None:
        text = reply.get(key)
        return ModelConfig.FromString(bytes.fromhex(text)) if text is not None else None

    content = ModelFileContent(config("signature"), config("completed"), reply.get("error", ""))
    return reply["name"], content
