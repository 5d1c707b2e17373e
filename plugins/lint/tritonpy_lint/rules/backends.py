"""Rules for backends, instances and Python models."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tritonpy_checks import (
    Edit,
    Finding,
    Fix,
    Level,
    LintModel,
    LintRule,
    Problem,
    remove_field,
    replace_value,
)
from tritonpy_config.known_backends import KNOWN_FORMATS, package_of
from tritonpy_config.normalization import instance_specs
from tritonpy_lint.rules.server_rule import GOOD, PYTHON_MODEL, TENSORS, ServerRule, python_model
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

BASE = f'backend: "python"\n{TENSORS}'
PYTHON = "python"
ENVIRONMENT = "EXECUTION_ENV_PATH"
# The Python backend provides it.
_PROVIDED = frozenset({"triton_python_backend_utils"})
# Parameters that the server or one of its plugins reads, whatever the backend.
_SERVER_PARAMETERS = (
    "isolation",
    "inline",
    "batch_policy",
    "slo_ms",
    "memory_bytes",
    "lazy",
    "pinned",
    "TRITON_BATCH_STRATEGY_PATH",
)
_CLOSE = 0.85
_INSTANCES_PER_CORE = 8
_THREADS_PER_CORE = 4
_PLATFORM_NAMES = {
    "onnx": "onnxruntime",
    "ort": "onnxruntime",
    "torch": "pytorch",
    "torchscript": "pytorch",
    "libtorch": "pytorch",
    "trt": "tensorrt",
    "plan": "tensorrt",
    "tf": "tensorflow",
    "savedmodel": "tensorflow",
}


class PlatformOrBackend(ServerRule):
    """B001: platform and backend are mixed up."""

    title = "platform and backend do not fit"
    reason = "platform is Triton's older name for some backends; a model needs only backend."
    remedy = "Write backend alone, or one of the platforms that the backend allows."
    bad = python_model(f'platform: "python"\n{TENSORS}')
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the legal pair for the platform, and the fix that writes it."""
        platform = model.given.platform
        if not platform and model.given.HasField("ensemble_scheduling") and model.config_path:
            text = 'platform: "ensemble"'
            edit = Edit(model.config_path, 0, 0, f"{text}\n")
            return f"Write {text}.", Fix(f"add {text}", (edit,))
        known = {form.backend for form in KNOWN_FORMATS}
        backend = _PLATFORM_NAMES.get(platform.lower(), platform.lower())
        if backend not in known:
            pairs = ", ".join(
                f'backend "{form.backend}" with platform "{form.platform}"'
                for form in KNOWN_FORMATS
                if form.platform
            )
            return f"Write backend alone. Legal pairs: {pairs}.", None
        path, place = model.config_path, model.positions.get("platform")
        advice = f'Write backend: "{backend}" instead of platform: "{platform}".'
        if path is None or place is None:
            return advice, None
        removal = remove_field(path, model.text, place)
        if model.given.backend:
            return advice, Fix("delete the field 'platform'", (removal,), safe=False)
        value = replace_value(path, model.text, place, f'"{backend}"')
        start = removal.start + model.text[removal.start : value.start].index("platform")
        name = Edit(path, start, start + len("platform"), "backend")
        return advice, Fix(f'write backend: "{backend}"', (name, value))


class BackendMissing(ServerRule):
    """B002: the backend is not installed."""

    title = "The backend is not installed"
    reason = "Each backend is a package of its own."
    bad = python_model(f'backend: "pyhton"\n{TENSORS}')
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the package that has the backend."""
        backend = model.config.backend if model.config is not None else model.given.backend
        package = package_of(backend)
        if package is not None:
            return f"Install it: pip install {package}", None
        known = sorted({form.backend for form in KNOWN_FORMATS})
        return f"Known backends: {', '.join(known)}.", None


class MisspelledParameter(LintRule):
    """B003: a parameter whose name is close to one that the server or the backend reads."""

    title = "A parameter is probably misspelled"
    reason = "Unknown parameters are passed to the model and have no other effect."
    bad = python_model(
        f'{BASE}parameters {{ key: "isolaton" value: {{ string_value: "thread" }} }}\n'
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per close name; other names are the model's own."""
        known = [*_SERVER_PARAMETERS, *model.parameters]
        folded = {name.lower(): name for name in known}
        for name in sorted(model.given.parameters):
            if name in known:
                continue
            near = difflib.get_close_matches(name.lower(), folded, 1, _CLOSE)
            if near:
                yield self.finding(
                    model,
                    f'parameters["{name}"]',
                    f"nothing reads the parameter '{name}'",
                    f"Did you mean '{folded[near[0]]}'?",
                )


class Devices(ServerRule):
    """I001: instance groups on devices that do not exist."""

    title = "An instance group cannot run on this machine"
    reason = "GPU ids count from 0 after CUDA_VISIBLE_DEVICES is applied."
    bad = python_model(f"{BASE}instance_group {{ kind: KIND_GPU gpus: [ 7 ] }}\n")
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the devices of the machine."""
        gpus = model.machine.gpus
        devices = f"GPUs {', '.join(map(str, gpus))}" if gpus else "no GPU"
        advice = (
            f"This machine has {devices}. Leave 'gpus' out to use every GPU, and 'kind' out to use "
            "GPUs only where they exist. 'tritonpy lint --gpus N' checks for another machine."
        )
        return advice, None


class NoGpuUsed(LintRule):
    """I002: GPU settings without an instance on a GPU."""

    title = "Settings for GPUs have no effect"
    reason = "Without a GPU, or with KIND_CPU, the model runs on the CPU without a message."
    bad = python_model(
        f"{BASE}optimization {{ execution_accelerators {{ "
        'gpu_execution_accelerator { name: "tensorrt" } } }\n'
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding for GPU accelerators of a model that runs on the CPU only."""
        if model.config is None:
            return
        accelerators = model.given.optimization.execution_accelerators
        kinds = {group.kind for group in model.config.instance_group}
        if accelerators.gpu_execution_accelerator and ModelInstanceGroup.KIND_GPU not in kinds:
            yield self.finding(
                model,
                "optimization.execution_accelerators.gpu_execution_accelerator",
                "the model runs on the CPU, so its GPU accelerator is not used",
                "Write instance_group { kind: KIND_GPU } to insist on a GPU: without one the model "
                "then fails to load.",
            )


class TooManyInstances(LintRule):
    """I003: more instances or threads than the processor can run."""

    title = "More instances or threads than cores"
    reason = "Instances beyond the cores wait for each other and use memory."
    bad = python_model(f"{BASE}instance_group {{ count: 5000 }}\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding with the numbers."""
        if model.config is None:
            return
        cores = model.machine.cores
        count = sum(spec.kind == "CPU" for spec in instance_specs(model.config))
        threads = (
            model.given.parameters["intra_op_thread_count"].string_value
            if ("intra_op_thread_count" in model.given.parameters)
            else ""
        )
        each = int(threads) if threads.isascii() and threads.isdigit() else 1
        limit = _THREADS_PER_CORE if each > 1 else _INSTANCES_PER_CORE
        if count > 1 and count * max(each, 1) > limit * cores:
            product = f" with {each} threads each" if each > 1 else ""
            yield self.finding(
                model,
                "instance_group",
                f"{count} instances{product} on {cores} cores",
                f"Start with one instance per core (count: {cores}) and measure.",
            )


class GroupCountZero(LintRule):
    """I005: a count of 0."""

    level = Level.ADVICE
    title = "count: 0 does not switch a group off"
    reason = "0 is the default of the field: the server then uses the backend's default count."
    bad = python_model(f"{BASE}instance_group {{ count: 0 }}\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per group whose text contains a count of 0."""
        for index, group in enumerate(model.given.instance_group):
            key = f"instance_group[{index}].count"
            if key in model.positions and group.count == 0:
                yield self.finding(
                    model, key, "count: 0 means the default number of instances, usually 1",
                    "Write the number of instances, or delete the field.",
                )  # fmt: skip


class PythonEnvironment(LintRule):
    """I004: EXECUTION_ENV_PATH where it has no effect, or without its file."""

    title = "The execution environment is not used or does not exist"
    reason = "Only the Python backend reads EXECUTION_ENV_PATH."
    bad = python_model(
        f'{BASE}parameters {{ key: "{ENVIRONMENT}" '
        'value: { string_value: "$$TRITON_MODEL_DIRECTORY/missing.tar.gz" } }\n'
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding for another backend, and an error for a file that does not exist."""
        if model.config is None or ENVIRONMENT not in model.given.parameters:
            return
        key, value = f'parameters["{ENVIRONMENT}"]', model.given.parameters[ENVIRONMENT]
        path = value.string_value
        if model.config.backend != PYTHON:
            message = f"{ENVIRONMENT} has no effect: the backend is '{model.config.backend}'"
            yield self.finding(model, key, message, "Delete the parameter.")
            return
        own = "$$TRITON_MODEL_DIRECTORY/"
        exists = (
            model.has_file(path.removeprefix(own))
            if path.startswith(own)
            else (os.path.exists(path))
        )
        if path and not exists:
            yield self.finding(
                model, key, f"the environment '{path}' does not exist",
                f"Name an archive or a folder; '{own}' stands for the model's folder.",
                level=Level.ERROR,
            )  # fmt: skip


class PythonModelCode(LintRule):
    """P001: mistakes in model.py that are visible without running it."""

    level = Level.ERROR
    title = "model.py is not a Python model"
    reason = "The file must define the class TritonPythonModel as Triton's Python API describes it."
    bad: ClassVar[Mapping[str, str]] = {
        "config.pbtxt": BASE,
        "1/model.py": "class Model:\n    pass\n",
    }
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield the first mistake of each version, from the syntax tree."""
        if model.config is None or model.config.backend != PYTHON:
            return
        filename = model.config.default_model_filename or "model.py"
        if not filename.endswith(".py"):
            yield self.finding(
                model,
                "default_model_filename",
                f"the file of a Python model ends with .py, not '{filename}'",
                "Rename the file.",
            )
            return
        for code in python_files(model):
            if isinstance(code.tree, ast.Module):
                found = _interface_mistake(code.tree)
            else:
                found = f"Python cannot read the file: {code.tree[0]}", code.tree[1]
            if found is not None:
                message, line = found
                yield self.finding(model, "", message, "Correct it.", file=code.file, line=line)


class ExecuteMissing(LintRule):
    """P003: the class has no method `execute`."""

    title = "TritonPythonModel has no execute method"
    reason = "The model loads, and every request fails."
    bad: ClassVar[Mapping[str, str]] = {
        "config.pbtxt": BASE,
        "1/model.py": "class TritonPythonModel:\n    pass\n",
    }
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per version whose class has neither the method nor a base class."""
        for code in python_files(model):
            node = _model_class(code.tree) if isinstance(code.tree, ast.Module) else None
            if node is not None and _is_plain(node) and not _has_method(node, "execute"):
                yield self.finding(
                    model,
                    "",
                    "TritonPythonModel has no method 'execute'",
                    "Add def execute(self, requests), which returns a list of responses.",
                    file=code.file,
                    line=node.lineno,
                )


class ImportMissing(LintRule):
    """P004: a module that is not installed."""

    title = "model.py imports a module that is not installed"
    reason = "A model without an environment of its own runs with the server's Python packages."
    bad: ClassVar[Mapping[str, str]] = {
        "config.pbtxt": BASE,
        "1/model.py": f"import no_such_module_here\n{PYTHON_MODEL}",
    }
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per module that neither this Python nor the model's folder has."""
        if ENVIRONMENT in model.given.parameters:
            return
        local = {name.rpartition("/")[2].removesuffix(".py") for name in model.files}
        local |= {part for name in model.files for part in name.split("/")[:-1]}
        for code in python_files(model):
            for name, line in _imports(code.tree) if isinstance(code.tree, ast.Module) else ():
                if name in _PROVIDED or name in local or _is_installed(name):
                    continue
                yield self.finding(
                    model,
                    "",
                    f"the module '{name}' is not installed here",
                    f"Run pip install for it, or name an environment in {ENVIRONMENT}.",
                    file=code.file,
                    line=line,
                )


@dataclass(frozen=True, slots=True)
class PythonFile:
    """One version's code: its syntax tree, or the error text and line of its first mistake."""

    file: str
    tree: ast.Module | tuple[str, int | None]


def python_files(model: LintModel) -> Iterator[PythonFile]:
    """Yield the code of each version of a Python model."""
    if model.config is None or model.config.backend != PYTHON:
        return
    filename = model.config.default_model_filename or "model.py"
    for version in model.versions:
        content = model.read(f"{version}/{filename}")
        if content is None or not filename.endswith(".py"):
            continue
        file = f"{model.folder or model.name}/{version}/{filename}"
        try:
            yield PythonFile(file, ast.parse(content, file))
        except SyntaxError as error:
            yield PythonFile(file, (error.msg, error.lineno))
        except ValueError as error:
            yield PythonFile(file, (str(error), None))


def _interface_mistake(tree: ast.Module) -> tuple[str, int | None] | None:
    """Return what prevents the server from making the model's object, and its line."""
    if not _defines(tree, "TritonPythonModel"):
        return "the file defines no class TritonPythonModel", 1
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "TritonPythonModel" in names:
                return "TritonPythonModel is not a class", node.lineno
    found = _model_class(tree)
    for method in found.body if found is not None and _is_plain(found) else ():
        if isinstance(method, ast.FunctionDef):
            text = _signature_mistake(method)
            if text:
                return text, method.lineno
    return None


def _signature_mistake(method: ast.FunctionDef) -> str:
    """Return what is wrong with the arguments of a method that the server calls, or ""."""
    required = len(method.args.args) - len(method.args.defaults)
    allowed = len(method.args.args) if method.args.vararg is None else sys.maxsize
    decorators = [each.id for each in method.decorator_list if isinstance(each, ast.Name)]
    if method.name == "__init__" and required > 1:
        return "__init__ must not need arguments: the server calls it without any"
    if method.name == "initialize" and not decorators and not required <= 2 <= allowed:
        return "initialize must take one argument: def initialize(self, args)"
    if method.name == "auto_complete_config" and not method.decorator_list:
        return "auto_complete_config must be a static method: write @staticmethod above it"
    return ""


def _model_class(tree: ast.Module) -> ast.ClassDef | None:
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "TritonPythonModel"
    ]
    return found[-1] if found else None


def _is_plain(node: ast.ClassDef) -> bool:
    return not (node.bases or node.decorator_list or node.keywords)


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield name and line of the modules that the file imports at its top level."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0], node.lineno


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _has_method(node: ast.ClassDef, name: str) -> bool:
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name == name:
            return True
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Expr, ast.Pass)):
            return True  # an assignment or a conditional definition may provide it
    return False


def _defines(tree: ast.Module, name: str) -> bool:
    """Return whether a module may define `name` at its top level."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name for alias in node.names]
            if name in names or "*" in names:
                return True
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"globals", "exec", "setattr"}
        for node in ast.walk(tree)
    )
