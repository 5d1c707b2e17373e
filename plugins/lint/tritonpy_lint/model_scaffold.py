"""Writes a model repository from model files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from tritonpy import StartupError
from tritonpy.plugins import PluginManager, install_command
from tritonpy_config.known_backends import KNOWN_FORMATS, package_of
from tritonpy_lint.linting import installed_backends, read_model
from tritonpy_lint.model_explanation import sample_request
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelInput, ModelOutput

LABELS = "labels.txt"
_SUFFIXES = {".pth": ".pt", ".jit": ".pt", ".engine": ".plan", ".trt": ".plan", ".pb": ".graphdef"}
_CONVERTED = "model.bin"  # of a model that CTranslate2 converted
_PYTHON_CODE = '''"""The Python model {name}: its output is twice its input."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            output = pb_utils.Tensor("OUT", array * 2)
            responses.append(pb_utils.InferenceResponse([output]))
        return responses
'''
_PYTHON_CONFIG = """backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }
"""
_CLIENT = '''"""Sends sample.json to the model {name}: `python client.py [URL]`."""

import json
import sys
import urllib.request
from pathlib import Path

url = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8000"
body = Path(__file__).with_name("sample.json").read_bytes()
request = urllib.request.Request(f"{{url}}/v2/models/{name}/infer", body)
for output in json.load(urllib.request.urlopen(request))["outputs"]:
    print(output["name"], output["datatype"], output["shape"], output["data"][:10])
'''
_TEST = '''"""The model {name} answers its sample request: needs pytest and tritonpy-testing."""

import json
from pathlib import Path

import numpy as np
from tritonpy_testing import InferInput, InProcessClient, running_server

FOLDER = Path(__file__).resolve().parent
NO_PORTS = {{"http": False, "grpc": False, "metrics": False}}


def test_the_sample_request_is_answered():
    inputs = []
    for given in json.loads((FOLDER / "sample.json").read_text())["inputs"]:
        kind = {{"BYTES": object, "BOOL": bool, "FP16": np.float16, "FP32": np.float32}}.get(
            given["datatype"], given["datatype"].replace("FP", "float").lower()
        )
        data = np.array(given["data"], dtype=kind).reshape(given["shape"])
        tensor = InferInput(given["name"], given["shape"], given["datatype"])
        inputs.append(tensor.set_data_from_numpy(data))
    config = {{
        "repositories": [{{"url": str(FOLDER.parent)}}],
        "frontends": NO_PORTS,
        "control": {{"mode": "explicit", "load": ["{name}"]}},
    }}
    with running_server(config) as server:
        result = InProcessClient(server).infer("{name}", inputs)
        for name in {outputs}:
            assert result.as_numpy(name) is not None
'''


@dataclass(slots=True)
class ModelScaffold:
    """What was written for one model: its name, its backend, and its files."""

    name: str
    backend: str
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def init_model(
    source: Path,
    repository: Path,
    manager: PluginManager,
    name: str = "",
    labels: Path | None = None,
    link: bool = False,
) -> ModelScaffold:
    """Write the model of the file or folder `source` into `repository`.

    Nothing is overwritten. Raises StartupError for an unknown kind of file, one whose backend is
    not installed, a model that exists already, and a file that its backend cannot read.
    """
    if not source.exists():
        raise StartupError(f"'{source}' does not exist")
    name = name or source.stem
    filename, backend = target_name(source, manager)
    folder = _new_folder(repository, name)
    made = ModelScaffold(name, backend)
    try:
        _place(source, folder / "1" / filename, link=link)
        for companion, target in _companions(source, filename):
            _place(companion, folder / "1" / target, link=link)
        config = read_config(folder, manager)
        _write_labels(config, folder, labels or source.with_name(LABELS), made)
        _write(folder, config, f"from {source.name}", made)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return made


def init_python_model(name: str, repository: Path, manager: PluginManager) -> ModelScaffold:
    """Write a Python model that doubles its input. Raises StartupError if it exists."""
    folder = _new_folder(repository, name)
    (folder / "1" / "model.py").write_text(_PYTHON_CODE.format(name=name), encoding="utf-8")
    (folder / "config.pbtxt").write_text(_PYTHON_CONFIG, encoding="utf-8")
    made = ModelScaffold(name, "python")
    _write(folder, read_config(folder, manager), "with tritonpy init --python", made)
    return made


def target_name(source: Path, manager: PluginManager) -> tuple[str, str]:
    """Return the file name and the backend for a model file, by its suffix.

    A folder is a SavedModel, or a converted transformer. Raises StartupError with the package that
    serves such files, or the known suffixes.
    """
    known: dict[str, tuple[str, str]] = {}
    for name, backend in installed_backends(manager).items():
        for filename in backend.files.default_filenames:
            if "." in filename:
                known.setdefault(Path(filename).suffix, (filename, name))
    suffix = _SUFFIXES.get(source.suffix, source.suffix)
    if source.is_dir():
        if (source / _CONVERTED).exists():
            return _transformer(source, manager)
        if any(source.glob("*.safetensors")):
            raise StartupError(
                f"'{source}' is a Hugging Face model: convert it with ct2-transformers-converter "
                f"--model {source} --output_dir {source.name}_converted, and give that folder"
            )
        suffix = ".savedmodel" if (source / "saved_model.pb").exists() else suffix
    if suffix in known:
        return known[suffix]
    for form in KNOWN_FORMATS:
        package = package_of(form.backend)
        if suffix and Path(form.filename).suffix == suffix and package is not None:
            raise StartupError(
                f"'{source}' needs the backend '{form.backend}': {install_command(package)}"
            )
    raise StartupError(
        f"'{source}' is no known kind of model; known are: {', '.join(sorted(known))}"
    )


def _transformer(source: Path, manager: PluginManager) -> tuple[str, str]:
    if "transformer" not in installed_backends(manager):
        package = install_command("tritonpy-backend-transformer")
        raise StartupError(f"'{source}' needs the backend 'transformer': {package}")
    return "model", "transformer"


def read_config(folder: Path, manager: PluginManager) -> ModelConfig:
    """Return the configuration that the server would complete for the model in `folder`.

    Raises StartupError if its backend cannot read the file.
    """
    model = read_model(folder, manager)
    problem = next((each for each in model.problems if each.code in {"F009", "B002"}), None)
    if problem is not None or model.config is None:
        text = problem.text if problem is not None else "no backend can read it"
        raise StartupError(f"the model file cannot be used: {text}")
    return model.config


def _new_folder(repository: Path, name: str) -> Path:
    folder = repository / name
    if folder.exists():
        raise StartupError(f"'{folder}' exists: remove it, or choose another name with --name")
    (folder / "1").mkdir(parents=True)
    return folder


def _place(source: Path, target: Path, *, link: bool) -> None:
    if link:
        target.symlink_to(source.resolve())
    elif source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def _companions(source: Path, filename: str) -> Iterator[tuple[Path, str]]:
    """Yield files that belong to the model: external data, and weights next to a graph."""
    if source.is_dir():
        return
    for path in sorted(source.parent.iterdir()):
        if path.name != source.name and path.name.startswith(f"{source.name}."):
            yield path, path.name
        elif source.suffix == ".xml" and path.stem == source.stem and path.suffix == ".bin":
            yield path, f"{Path(filename).stem}.bin"


def _write_labels(config: ModelConfig, folder: Path, labels: Path, made: ModelScaffold) -> None:
    """Copy the label file if an output has as many elements as the file has lines."""
    if not labels.is_file():
        return
    count = len(labels.read_text(encoding="utf-8").splitlines())
    for output in config.output:
        if prod(output.dims) == count:
            shutil.copy2(labels, folder / LABELS)
            output.label_filename = LABELS
            made.files.append(LABELS)
            return
    made.notes.append(f"{labels} has {count} lines, which fit no output: it is not used")


def _write(folder: Path, config: ModelConfig, origin: str, made: ModelScaffold) -> None:
    """Write the configuration, a sample request, a client and a test."""
    sample = sample_request(config)
    outputs = [output.name for output in config.output]
    content = {
        "config.pbtxt": "\n".join(config_lines(config, folder.name, origin)) + "\n",
        "sample.json": json.dumps(sample, indent=1) + "\n",
        "client.py": _CLIENT.format(name=folder.name),
        "test_model.py": _TEST.format(name=folder.name, outputs=outputs),
    }
    for name, text in content.items():
        (folder / name).write_text(text, encoding="utf-8")
    files = (str(path.relative_to(folder)) for path in sorted((folder / "1").iterdir()))
    made.files = [*content, *made.files, *files]
    if not config.input:
        made.notes.append("the file does not describe its tensors: complete config.pbtxt")
    if any(-1 in tensor.dims for tensor in config.input):
        made.notes.append("sizes of -1 are 1 in sample.json: change them to what the model expects")


def config_lines(config: ModelConfig, name: str, origin: str) -> Iterator[str]:
    """Yield the lines of a configuration in which comments explain each part."""
    yield f"# The model {name}, made {origin}. 'tritonpy explain FIELD' describes every field."
    yield f'backend: "{config.backend}"'
    yield ""
    if config.max_batch_size > 0:
        yield "# At most this many rows run at once. dims leaves the batch dimension out."
    else:
        yield "# 0: the model has no batch dimension, and dims is the complete shape."
    yield f"max_batch_size: {config.max_batch_size}"
    yield ""
    if not config.input and not config.output:
        yield "# The model's file does not describe its tensors: complete these lines."
        yield '# input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 1 ] } ]'
        yield '# output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] } ]'
    for kind in ("input", "output") if config.input else ():
        yield f"{kind} ["
        tensors = list(getattr(config, kind))
        for index, tensor in enumerate(tensors):
            yield f"  {_tensor(tensor)}{',' if index < len(tensors) - 1 else ''}"
        yield "]"
    yield ""
    if config.max_batch_size > 1 and not config.model_transaction_policy.decoupled:
        yield "# Requests that wait are merged; max_queue_delay_microseconds lets them wait longer."
        yield "dynamic_batching { }"
        yield ""
    if config.model_transaction_policy.decoupled:
        yield "# A request may have several responses."
        yield "model_transaction_policy { decoupled: true }"
        yield ""
    yield "# One instance, on each GPU if there is one and the backend uses it."
    yield "instance_group { count: 1 }"
    yield from _warmup(config)


def _tensor(tensor: ModelInput | ModelOutput) -> str:
    text = f'{{ name: "{tensor.name}" data_type: {DataType.Name(tensor.data_type)} '
    text += f"dims: [ {', '.join(map(str, tensor.dims))} ]"
    if tensor.HasField("reshape"):
        text += f" reshape {{ shape: [ {', '.join(map(str, tensor.reshape.shape))} ] }}"
    if isinstance(tensor, ModelOutput) and tensor.label_filename:
        text += f' label_filename: "{tensor.label_filename}"'
    if isinstance(tensor, ModelInput) and tensor.optional:
        text += " optional: true"
    return f"{text} }}"


def _warmup(config: ModelConfig) -> Iterator[str]:
    """Yield a warm-up of zeros; a comment if a size is variable, so that no size is guessed."""
    if not config.input:
        return
    variable = any(-1 in tensor.dims for tensor in config.input)
    mark = "# " if variable else ""
    yield ""
    yield "# Each instance runs this request before the model is ready."
    if variable:
        yield "# Replace each -1 by a size, and remove the comment marks."
    yield f'{mark}model_warmup {{ name: "zeros" batch_size: 1'
    for tensor in config.input:
        if not tensor.optional:
            dims = ", ".join(map(str, tensor.dims))
            kind = DataType.Name(tensor.data_type)
            value = f"data_type: {kind} dims: [ {dims} ] zero_data: true"
            yield f'{mark}  inputs {{ key: "{tensor.name}" value: {{ {value} }} }}'
    yield f"{mark}}}"


def client_snippet(config_folder: Path) -> str:
    """Return a shell command that sends the sample request of a model."""
    name = config_folder.name
    return f"curl localhost:8000/v2/models/{name}/infer -d @{config_folder / 'sample.json'}"
