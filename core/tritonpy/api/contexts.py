"""What a backend knows about its model and its instance."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonpy.api.device import Device, ModelMemory, NoDevice
from tritonpy.api.engine import Engine
from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy_config.model_fit import qualified_name
from tritonpy_config.options import Options
from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_types import Batch

if TYPE_CHECKING:
    from tritonpy_batching.batch_layout import BatchLayout
    from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(slots=True)
class ModelContext:
    """One version of a model, as its backend sees it.

    - `path`: the folder of the version; `directory`: the folder of the model.
    - `parameters`: the string values of the configuration's `parameters`.
    - `output_types`: the data type of each configured output.
    - `options`: the backend's own options from `server.yaml`.
    - `shared`: the value that `load` returned, or that `auto_complete` stored there.
    - `metrics`: creates metrics of the model. They are removed when the model is unloaded. Metrics
      that `auto_complete` creates are removed when it returns.
    - `backend_directory`: the folder of the Python-based backend if the model uses one, else None.
    - `layout`: for `gather` and `scatter`, describes the tensors that are not simply stacked rows;
      None if every tensor is.
    - `namespace`: the model's repository if several repositories may contain models of the same
      name.
    - `memory`: memory for inputs and outputs that are copied to and from GPUs.
    - `gpus`: the GPUs of the server.
    - `cancellation`: informs the backend that its load is canceled.
    """

    name: str
    version: int
    config: ModelConfig
    directory: Path
    path: Path
    parameters: Mapping[str, str]
    output_types: Mapping[str, str]
    options: Options
    engine: Engine
    log: logging.LoggerAdapter[logging.Logger]
    shared: Any = None
    default_max_batch_size: int = 4
    metrics: ModelMetrics = field(default_factory=lambda: ModelMetrics(CustomMetrics()))
    backend_directory: Path | None = None
    layout: BatchLayout | None = None
    namespace: str = ""
    memory: ModelMemory = field(default_factory=ModelMemory)
    cancellation: LoadCancellation = field(default_factory=LoadCancellation)
    gpus: Device = field(default_factory=NoDevice)

    @property
    def qualified_name(self) -> str:
        """The name of the model, unique in the server."""
        return qualified_name(self.namespace, self.name)


@dataclass(slots=True)
class InstanceContext:
    """One instance of a model.

    - `kind`: CPU, GPU or MODEL; `device_id` counts within that kind.
    - `passive`: the instance is loaded but receives no requests.
    - `secondary_devices`: pairs of kind and id, as the instance group lists them.
    - `host_policy`: the name of the host policy that applies to the instance.
    - `cores`: the processor cores that its thread or process is bound to; empty for no binding.
    - `max_open`: how many unfinished requests the instance may hold; None for no limit. Set it in
      the backend's `__init__`.
    - `take_more(n)`: returns up to n further requests as a batch, or None if none wait. It is for
      backends that admit requests continuously, between their steps.
    """

    name: str
    kind: str
    device_id: int
    index: int
    profiles: tuple[str, ...] = ()
    passive: bool = False
    secondary_devices: tuple[tuple[str, int], ...] = ()
    host_policy: str = ""
    cores: tuple[int, ...] = ()
    max_open: int | None = None
    take_more: Callable[[int], Batch | None] = field(default=lambda _n: None)
