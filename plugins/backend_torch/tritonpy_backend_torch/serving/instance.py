"""One instance of a model: its network, where that computes and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tritonpy import DATATYPE_OF_NUMBER, Batch, InstanceContext, MemoryUsage, ModelContext, Tensor
from tritonpy_backend_torch.archive import Form
from tritonpy_backend_torch.check import check
from tritonpy_backend_torch.failures import run_failure
from tritonpy_backend_torch.isolation import isolation_for
from tritonpy_backend_torch.naming import naming_of
from tritonpy_backend_torch.serving.cuda import CudaLane, cuda_device, is_urgent, limit_memory
from tritonpy_backend_torch.serving.execution import Execution
from tritonpy_backend_torch.serving.homes import memory_of
from tritonpy_backend_torch.serving.lanes import HostLane, Lane, ModelLane
from tritonpy_backend_torch.serving.modes import mode_of
from tritonpy_backend_torch.serving.network import Network
from tritonpy_backend_torch.serving.networks import Networks
from tritonpy_backend_torch.serving.threads import use_threads

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup

_AT_HOME = frozenset(
    {Form.PYTHON, Form.PICKLE, Form.AOTI}
)  # they take inputs where their weights are, the others know better
_CLASS_THREADS = 1  # inside an operator, of a Python class that says nothing: Triton's default for these


class Instance:
    """Runs batches on the thread that made it."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        networks: Networks = model.shared
        settings, config = networks.settings, model.config
        is_class = networks.files.form is Form.PYTHON
        use_threads(settings, len(instance.cores), model.name, model.log, _CLASS_THREADS if is_class else 0)
        device = device_of(instance.kind, instance.device_id, model.name)
        if settings.memory_limit:
            alone = isolation_for(networks.files.form, model.parameters) == "process"
            limit_memory(settings.memory_limit, device, alone)
        network = networks.acquire(device)
        check(config, network.signature)
        self._lane = _lane(config, device, network, networks.files.form in _AT_HOME)
        self._execution = Execution(
            network, naming_of(config, network.signature, model.log), _output_types(config), self._lane, settings
        )
        self._mode = mode_of(settings, (device or network.home or torch.device("cpu")).type)
        self._cleans = settings.cache_cleaning
        self._network: Network | None = network
        self._owns = not settings.weight_sharing

    def run(self, batch: Batch) -> dict[str, Tensor]:
        """Return the outputs of `batch`, and stamp it; raises a TritonError with Triton's text."""
        execution, lane = self._execution, self._lane
        try:
            with lane.current():
                inputs = execution.inputs(lane.gathered(batch))
                lane.settle()
                batch.stamp()
                with self._mode():
                    result = execution.run(inputs)
                batch.stamp()
                return execution.told(result)
        except Exception as error:
            raise run_failure(error) from error
        finally:
            if self._cleans:
                lane.clean()

    def memory(self) -> list[MemoryUsage]:
        """Return what the instance's own network holds."""
        network = self._network
        return memory_of(network.weights()) if network is not None and self._owns else []

    def close(self) -> None:
        """Let go of the network, and give the memory back that was kept for it."""
        if self._network is not None:
            self._network = None
            del self._execution
            self._lane.clean()


def device_of(kind: str, number: int, model: str) -> Any:
    """Return the `torch.device` of an instance, None where the model has its parts where it wants; raises Unavailable where it is not there."""
    if kind == "GPU":
        return cuda_device(number, model)
    return None if kind == "MODEL" else torch.device("cpu")


def described_device(config: ModelConfig) -> Any:
    """Return the device on which a model is opened to be described: that of its first instance."""
    groups = config.instance_group
    return device_of(*_first(groups[0]), config.name) if groups else torch.device("cpu")


def _first(group: ModelInstanceGroup) -> tuple[str, int]:
    if group.kind == group.KIND_GPU:
        return "GPU", group.gpus[0] if group.gpus else 0
    return ("MODEL" if group.kind == group.KIND_MODEL else "CPU"), 0


def _lane(config: ModelConfig, device: Any, network: Network, at_home: bool) -> Lane:
    if device is None:
        return ModelLane(network.home if at_home else None)
    if device.type == "cuda":
        return CudaLane(device, config.optimization.input_pinned_memory.enable, is_urgent(config))
    return HostLane()


def _output_types(config: ModelConfig) -> dict[str, str]:
    """Return the data type of every output and state, in the protocol's name."""
    fields = [(field.name, field.data_type) for field in config.output]
    states = [(state.output_name, state.data_type) for state in config.sequence_batching.state]
    return {name: DATATYPE_OF_NUMBER[number].name for name, number in (*states, *fields)}
