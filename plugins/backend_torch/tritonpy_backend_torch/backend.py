"""Backend class that runs batches in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Batch, InstanceContext, MemoryUsage, ModelContext, TritonError
from tritonpy.config import SearchDimension, thread_counts
from tritonpy.execution import scatter
from tritonpy_backend_kit.config_completion import needs_completion
from tritonpy_backend_kit.shared_model import SharedModelBackend
from tritonpy_backend_torch.archive import ArchiveFormat, open_records
from tritonpy_backend_torch.config_completion import complete_config
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.isolation import default_isolation
from tritonpy_backend_torch.model_files import (
    DEFAULT_FILENAMES,
    PYTHON_RUNTIME,
    ModelFiles,
    model_files,
)
from tritonpy_backend_torch.options import TorchOptions
from tritonpy_backend_torch.runtime import has_cuda, import_pytorch
from tritonpy_backend_torch.settings import ModelSettings, model_settings
from tritonpy_backend_torch.signature import Signature

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_UNKNOWN_SIGNATURE = Signature(())


class TorchBackend(SharedModelBackend):
    """Runs TorchScript models, torch.export programs, AOTInductor packages and Python classes.

    Parameters, names of inputs and outputs, and error texts are those of Triton. Each instance has
    its own weights unless the model enables weight sharing.
    """

    Options: ClassVar[type[TorchOptions]] = TorchOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    model_parameters: ClassVar[tuple[str, ...]] = (
        "DISABLE_CUDNN",
        "DISABLE_OPTIMIZED_EXECUTION",
        "ENABLE_CACHE_CLEANING",
        "ENABLE_JIT_EXECUTOR",
        "ENABLE_JIT_PROFILING",
        "ENABLE_TENSOR_FUSER",
        "ENABLE_WEIGHT_SHARING",
        "INFERENCE_MODE",
        "INTER_OP_THREAD_COUNT",
        "INTRA_OP_THREAD_COUNT",
        "MODEL_CLASS",
        "NUM_INTEROP_THREADS",
        "NUM_THREADS",
        "TORCH_COMPILE_OPTIONAL_PARAMETERS",
        "CHANNELS_LAST",
        "memory_limit_bytes",
        "precision",
    )
    default_filenames: ClassVar[tuple[str, ...]] = DEFAULT_FILENAMES
    platforms: ClassVar[tuple[str, ...]] = ("pytorch_libtorch", "torch_aoti")
    runtimes: ClassVar[tuple[str, ...]] = (PYTHON_RUNTIME,)
    uses_gpu: ClassVar[bool] = has_cuda()

    @classmethod
    def search_dimensions(cls, cores: int) -> Sequence[SearchDimension]:
        """Return the number of threads of one operator."""
        return (SearchDimension("INTRA_OP_THREAD_COUNT", thread_counts(cores)),)

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration, completed if the model file describes its tensors."""
        if not needs_completion(model.config):
            return model.config
        signature = _described(model, _files(model))
        if not signature.is_complete:
            model.log.warning(
                "skipping model configuration auto-complete for '%s': not supported for pytorch "
                "backend, because the file does not"
                " describe its inputs and outputs: config.pbtxt must",
                model.name,
            )
            return model.config
        return complete_config(model.config, signature, model.default_max_batch_size)

    @classmethod
    def isolation_of(cls, model: ModelContext) -> str:
        """Return "process" for models that run Python code or hold the GIL while they execute."""
        try:
            model_format = _files(model).model_format
        except TritonError:
            return cls.isolation  # loading reports the error
        return default_isolation(model_format, model.parameters)

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the loader of the instances' networks, which also keeps shared networks."""
        return model.shared or import_pytorch().SharedModel(model, _files(model), _settings(model))

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._instance = import_pytorch().PytorchInstance(model, instance)

    def execute(self, batch: Batch) -> None:
        """Run the batch; a PyTorch error fails the whole batch with Triton's error text."""
        batch.respond(scatter(batch, self._instance.run(batch)))

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the memory of the weights that only this instance uses."""
        found: Sequence[MemoryUsage] = self._instance.memory_usage()
        return found

    def close(self) -> None:
        """Drop the reference to the network."""
        self._instance.close()


def _files(model: ModelContext) -> ModelFiles:
    config = model.config
    return model_files(model.path, config.default_model_filename, config.runtime, model.name)


def _settings(model: ModelContext) -> ModelSettings:
    assert isinstance(model.options, TorchOptions), (  # noqa: S101
        "the core decodes this backend's options: this is a bug"
    )
    return model_settings(model.parameters, model.options.allow_pickles)


def _described(model: ModelContext, files: ModelFiles) -> Signature:
    """Return the signature in the model file; a compiled package is loaded for it and kept."""
    if files.model_format is ArchiveFormat.EXPORTED:
        with open_records(files.path) as found:
            return exported_signature(program_of(found))
    if files.model_format is not ArchiveFormat.AOTI:
        return _UNKNOWN_SIGNATURE
    pytorch = import_pytorch()
    shared_model = model.shared = pytorch.SharedModel(model, files, _settings(model))
    signature: Signature = shared_model.describe(
        pytorch.description_device(model.config)
    ).full_signature()
    return signature
