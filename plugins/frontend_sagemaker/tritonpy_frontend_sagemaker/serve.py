"""The program `serve`, which SageMaker runs in a container: environment variables to flags.

Source: docker/sagemaker/serve of the Triton server, with its texts.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SINGLE_MODEL_REPOSITORY = "/opt/ml/model"
# With several models, each has a repository of its own. The server needs one to start with.
MULTI_MODEL_REPOSITORY = "/tmp/sagemaker"  # noqa: S108 - as in Triton
_INFERENCE_TYPES = ("infer", "generate", "generate_stream")
_MIB = 1024 * 1024
# Flags, the variable of each without its prefix, and the default.
_FLAGS = (
    ("sagemaker-port", "SAGEMAKER_BIND_TO_PORT", ""),
    ("sagemaker-safe-port-range", "SAGEMAKER_SAFE_PORT_RANGE", ""),
    ("allow-grpc", "SAGEMAKER_TRITON_ALLOW_GRPC", "false"),
    ("allow-metrics", "SAGEMAKER_TRITON_ALLOW_METRICS", "false"),
    ("metrics-port", "SAGEMAKER_TRITON_METRICS_PORT", ""),
    ("grpc-port", "SAGEMAKER_TRITON_GRPC_PORT", ""),
    ("buffer-manager-thread-count", "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", ""),
    ("sagemaker-thread-count", "SAGEMAKER_TRITON_THREAD_COUNT", ""),
    ("log-verbose", "SAGEMAKER_TRITON_LOG_VERBOSE", "true"),
    ("log-info", "SAGEMAKER_TRITON_LOG_INFO", ""),
    ("log-warning", "SAGEMAKER_TRITON_LOG_WARNING", ""),
    ("log-error", "SAGEMAKER_TRITON_LOG_ERROR", ""),
    # Triton's script passes the value on, so that "false" is what disables it.
    ("model-namespacing", "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING", "true"),
)
_BACKEND_SETTINGS = (
    ("python,shm-default-byte-size", "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", str(16 * _MIB)),
    ("python,shm-growth-byte-size", "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE", str(_MIB)),
    ("tensorflow,version", "SAGEMAKER_TRITON_TENSORFLOW_VERSION", ""),
)


class ServeError(Exception):
    """The environment or the folder of the model is wrong; the lines of the message say how."""


def main() -> None:
    """Start the server with the flags of the environment."""
    environment = dict(os.environ)
    try:
        arguments = make_arguments(environment, Path(SINGLE_MODEL_REPOSITORY))
    except ServeError as error:
        sys.exit(str(error))
    Path(MULTI_MODEL_REPOSITORY).mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    command = [sys.executable, "-m", "tritonpy", "serve", *arguments]
    os.execve(sys.executable, command, environment)  # noqa: S606 - the server replaces this program


def make_arguments(environment: dict[str, str], repository: Path) -> list[str]:
    """Return the arguments of `tritonpy serve`; add to `environment` what the server reads there.

    `repository` is the folder of an endpoint with one model. Raises ServeError.
    """
    several = environment.get("SAGEMAKER_MULTI_MODEL") == "true"
    kind = environment.get("SAGEMAKER_TRITON_INFERENCE_TYPE")
    if kind and kind not in _INFERENCE_TYPES:
        raise ServeError(
            f"ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE '{kind}'\n"
            f"       Must be one of: {', '.join(_INFERENCE_TYPES)}"
        )
    mode = environment.get("SAGEMAKER_TRITON_OVERRIDE_PING_MODE") or (
        "live" if several else "ready"
    )
    environment["SAGEMAKER_TRITON_PING_MODE"] = mode
    arguments = ["--allow-sagemaker=true", "--allow-http=false", "--model-control-mode=explicit"]
    if several:
        _print(f'Triton is running in SageMaker MME mode. Using Triton ping mode: "{mode}"')
        arguments.append(f"--model-repository={MULTI_MODEL_REPOSITORY}")
    else:
        arguments.append(f"--model-repository={repository}")
        model = _find_model(environment, repository)
        environment["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] = model
        arguments.append(f"--load-model={model}")
    return [*arguments, *_flags(environment)]


def _find_model(environment: Mapping[str, str], repository: Path) -> str:
    if (repository / "config.pbtxt").is_file():
        raise ServeError(
            "ERROR: Incorrect directory structure.\n"
            "       Model directory needs to contain the top level folder"
        )
    given = environment.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME")
    if given:
        if not (repository / given).is_dir():
            raise ServeError(
                f"ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME {given} "
                "does not exist"
            )
        return given
    folders = (
        sorted(each.name for each in repository.iterdir() if each.is_dir())
        if repository.is_dir()
        else []
    )
    if not folders:
        raise ServeError("ERROR: No model found in model repository")
    if len(folders) > 1:
        raise ServeError(
            "ERROR: More than 1 model directory found in model repository.\n"
            "       Either provide a single directory or set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME "
            "to run the ensemble backend.\n"
            f"       Directories found in model repository: {' '.join(folders)}"
        )
    _print(
        "WARNING: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided.\n"
        f"         Starting with the only existing model directory {folders[0]}"
    )
    return folders[0]


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _flags(environment: Mapping[str, str]) -> Iterator[str]:
    for flag, variable, default in _FLAGS:
        if value := environment.get(variable) or default:
            yield f"--{flag}={value}"
    for setting, variable, default in _BACKEND_SETTINGS:
        if value := environment.get(variable) or default:
            yield f"--backend-config={setting}={value}"
    if limit := environment.get("SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT"):
        for gpu in _gpus():
            yield f"--model-load-gpu-limit={gpu}:{limit}"
    yield from shlex.split(environment.get("SAGEMAKER_TRITON_ADDITIONAL_ARGS", ""))


def _gpus() -> range:
    """Return the indexes of the GPUs that the driver lists."""
    folder = Path("/proc/driver/nvidia/gpus")
    return range(len(list(folder.iterdir())) if folder.is_dir() else 0)


if __name__ == "__main__":
    main()
