"""One instance of a model: its network, device and execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tritonpy import Batch, InstanceContext, MemoryUsage, ModelContext, Tensor
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_torch.archive import ArchiveFormat
from tritonpy_backend_torch.config_check import check_config
from tritonpy_backend_torch.errors import execution_error
from tritonpy_backend_torch.isolation import default_isolation
from tritonpy_backend_torch.name_mapping import map_names
from tritonpy_backend_torch.pytorch.cuda import CudaTransfer, cuda_device, is_urgent, limit_memory
from tritonpy_backend_torch.pytorch.execution import Execution
from tritonpy_backend_torch.pytorch.modes import execution_mode
from tritonpy_backend_torch.pytorch.network import Network
from tritonpy_backend_torch.pytorch.shared_model import SharedModel
from tritonpy_backend_torch.pytorch.threads import set_thread_counts
from tritonpy_backend_torch.pytorch.transfer import DeviceTransfer, HostTransfer, ModelTransfer
from tritonpy_backend_torch.pytorch.weight_memory import weight_memory

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup

_INPUTS_ON_WEIGHT_DEVICE = frozenset(
    {ArchiveFormat.PYTHON, ArchiveFormat.PICKLE, ArchiveFormat.AOTI}
)  # these take inputs on the device of their weights; the others place inputs themselves
_CLASS_THREADS = (
    1  # threads per operator for a Python class without a setting: Triton's default for them
)


class PytorchInstance:
    """Runs batches; all methods must be called on the thread that created it."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        shared_model: SharedModel = model.shared
        settings, config = shared_model.settings, model.config
        is_class = shared_model.files.model_format is ArchiveFormat.PYTHON
        set_thread_counts(
            settings, len(instance.cores), model.name, model.log, _CLASS_THREADS if is_class else 0
        )
        device = instance_device(instance.kind, instance.device_id, model.name)
        if settings.memory_limit:
            is_isolated = (
                default_isolation(shared_model.files.model_format, model.parameters) == "process"
            )
            limit_memory(settings.memory_limit, device, is_isolated)
        network = shared_model.acquire(device)
        check_config(config, network.signature)
        self._transfer = _transfer(
            config, device, network, shared_model.files.model_format in _INPUTS_ON_WEIGHT_DEVICE
        )
        self._execution = Execution(
            network,
            map_names(config, network.signature, model.log),
            _output_types(config),
            self._transfer,
            settings,
        )
        self._mode = execution_mode(
            settings, (device or network.weight_device or torch.device("cpu")).type
        )
        self._cleans_cache = settings.cache_cleaning
        self._network: Network | None = network
        self._owns_weights = not settings.weight_sharing

    def run(self, batch: Batch) -> dict[str, Tensor]:
        """Return the outputs of `batch` and stamp it; raise a `TritonError` with Triton's text."""
        execution, transfer = self._execution, self._transfer
        try:
            with transfer.context():
                inputs = execution.inputs(transfer.gather_inputs(batch))
                transfer.synchronize()
                batch.stamp()
                with self._mode():
                    result = execution.run(inputs)
                batch.stamp()
                return execution.outputs(result)
        except Exception as error:
            raise execution_error(error) from error
        finally:
            if self._cleans_cache:
                transfer.release_cache()

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory of the network if only this instance uses it."""
        network = self._network
        return (
            weight_memory(network.weights()) if network is not None and self._owns_weights else []
        )

    def close(self) -> None:
        """Drop the reference to the network and release cached memory."""
        if self._network is not None:
            self._network = None
            del self._execution
            self._transfer.release_cache()


def instance_device(kind: str, number: int, model: str) -> Any:
    """Return the `torch.device` of an instance, or None if the model places its own parts.

    Raises `Unavailable` if the device does not exist.
    """
    if kind == "GPU":
        return cuda_device(number, model)
    return None if kind == "MODEL" else torch.device("cpu")


def description_device(config: ModelConfig) -> Any:
    """Return the device on which a model is opened to read its signature: its first instance's."""
    groups = config.instance_group
    return (
        instance_device(*_first_device(groups[0]), config.name) if groups else torch.device("cpu")
    )


def _first_device(group: ModelInstanceGroup) -> tuple[str, int]:
    if group.kind == group.KIND_GPU:
        return "GPU", group.gpus[0] if group.gpus else 0
    return ("MODEL" if group.kind == group.KIND_MODEL else "CPU"), 0


def _transfer(
    config: ModelConfig, device: Any, network: Network, inputs_on_weight_device: bool
) -> DeviceTransfer:
    if device is None:
        return ModelTransfer(network.weight_device if inputs_on_weight_device else None)
    if device.type == "cuda":
        return CudaTransfer(
            device, config.optimization.input_pinned_memory.enable, is_urgent(config)
        )
    return HostTransfer()


def _output_types(config: ModelConfig) -> dict[str, str]:
    """Return the protocol's data type of every output and state."""
    fields = [(field.name, field.data_type) for field in config.output]
    states = [(state.output_name, state.data_type) for state in config.sequence_batching.state]
    return {name: DATATYPE_OF_NUMBER[number].name for name, number in (*states, *fields)}
