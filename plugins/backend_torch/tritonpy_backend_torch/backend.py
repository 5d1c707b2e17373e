"""The backend itself: ties a model's files and networks to the server's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy import Backend, Batch, InstanceContext, MemoryUsage, ModelContext, TritonError, scatter
from tritonpy_backend_torch.archive import Form, records
from tritonpy_backend_torch.completion import completed, needs_completion
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.isolation import isolation_for
from tritonpy_backend_torch.model_files import DEFAULT_FILENAMES, PYTHON_RUNTIME, ModelFiles, model_files
from tritonpy_backend_torch.options import TorchOptions
from tritonpy_backend_torch.runtime import has_cuda, serving
from tritonpy_backend_torch.settings import TorchSettings, torch_settings
from tritonpy_backend_torch.signature import Signature

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_NOT_TOLD = Signature(())


class TorchBackend(Backend):
    """Runs TorchScript models, programs of torch.export, AOTInductor packages and classes of Python files.

    Parameters, names of inputs and outputs, and texts are those of Triton. Each instance has weights of its own unless the model says otherwise.
    """

    Options: ClassVar[type[TorchOptions]] = TorchOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    default_filenames: ClassVar[tuple[str, ...]] = DEFAULT_FILENAMES
    platforms: ClassVar[tuple[str, ...]] = ("pytorch_libtorch", "torch_aoti")
    runtimes: ClassVar[tuple[str, ...]] = (PYTHON_RUNTIME,)
    uses_gpu: ClassVar[bool] = has_cuda()

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration with what the model's file says, where that says anything."""
        if not needs_completion(model.config):
            return model.config
        signature = _described(model, _files(model))
        if not signature.is_complete:
            model.log.warning(
                "skipping model configuration auto-complete for '%s': not supported for pytorch backend, where the file does not"
                " tell the types of inputs and outputs: config.pbtxt has to",
                model.name,
            )
            return model.config
        return completed(model.config, signature, model.default_max_batch_size)

    @classmethod
    def isolation_of(cls, model: ModelContext) -> str:
        """Return "process" for a model that runs Python code, or that PyTorch runs without letting other threads run."""
        try:
            form = _files(model).form
        except TritonError:
            return cls.isolation  # loading it says what is wrong
        return isolation_for(form, model.parameters)

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return what opens the networks of the instances, and keeps those that they share."""
        return model.shared or serving().Networks(model, _files(model), _settings(model))

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._instance = serving().Instance(model, instance)

    def execute(self, batch: Batch) -> None:
        """Run the batch; an error of PyTorch fails all of it with Triton's text."""
        batch.respond(scatter(batch, self._instance.run(batch)))

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the bytes of the weights that are this instance's own."""
        found: Sequence[MemoryUsage] = self._instance.memory()
        return found

    @classmethod
    def shared_memory_usage(cls, shared: Any) -> Sequence[MemoryUsage]:
        """Return the bytes of the weights that instances share."""
        found: Sequence[MemoryUsage] = () if shared is None else shared.memory()
        return found

    def close(self) -> None:
        """Let go of the network."""
        self._instance.close()

    @classmethod
    def unload(cls, shared: Any) -> None:
        """Let go of the networks that instances share."""
        if shared is not None:
            shared.close()


def _files(model: ModelContext) -> ModelFiles:
    config = model.config
    return model_files(model.path, config.default_model_filename, config.runtime, model.name)


def _settings(model: ModelContext) -> TorchSettings:
    assert isinstance(model.options, TorchOptions), "the core decodes this backend's options: this is a bug"  # noqa: S101
    return torch_settings(model.parameters, model.options.allow_pickles)


def _described(model: ModelContext, files: ModelFiles) -> Signature:
    """Return what the file says; a compiled package is loaded for that, and kept."""
    if files.form is Form.EXPORTED:
        with records(files.path) as found:
            return exported_signature(program_of(found))
    if files.form is not Form.AOTI:
        return _NOT_TOLD
    torch_side = serving()
    networks = model.shared = torch_side.Networks(model, files, _settings(model))
    signature: Signature = networks.describe(torch_side.described_device(model.config)).told()
    return signature
