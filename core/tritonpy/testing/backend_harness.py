"""Runs a backend without a server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.engine import Engine, MemoryUsage
from tritonpy.clock import now_ns
from tritonpy.config.complete import merge_auto_complete
from tritonpy.config.normalize import normalize
from tritonpy.config.server import decode_options
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.device_memory import ModelMemory
from tritonpy.errors import Internal, TritonError
from tritonpy.layout import BatchLayout
from tritonpy.runners.isolation import isolated, loads_elsewhere
from tritonpy.runners.roster import roster_change
from tritonpy.testing.isolated_instance import IsolatedInstance
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import Witness
from tritonpy.types import DATATYPE_OF_NUMBER, Batch, InferRequest, InferResponse, OutputSpec, Tensor
from tritonpy_protos.model_config_pb2 import ModelConfig

Array = npt.NDArray[Any]


class BackendHarness:
    """One model version with one instance, executed as a server does: on the instance's own thread, one batch at a time.

    A context manager: entering loads the model from `folder`/1, leaving closes and unloads it. `witness` sees the answers,
    `metrics` are those that the model makes. Where the configuration or the backend asks for isolation, the instance is in a process of its own.
    `gpus` are those that the machine has: the instance is the first that the configuration asks for. `memory` is what the model gets of the server's pools.
    """

    def __init__(
        self, backend: type[Backend], config: ModelConfig, folder: Path,
        options: Mapping[str, Any] | None = None, engine: Engine | None = None,
        gpus: Sequence[int] = (), memory: ModelMemory | None = None,
    ) -> None:  # fmt: skip
        self.backend = backend
        self.gpus = gpus
        self.witness = Witness()
        self.metrics = CustomMetrics()
        self._exits = ExitStack()
        (folder / "1").mkdir(parents=True, exist_ok=True)
        self.model = ModelContext(
            name=config.name or folder.name, version=1, config=config, directory=folder, path=folder / "1",
            parameters={key: value.string_value for key, value in config.parameters.items()},
            output_types={}, options=decode_options(backend.Options, options or {}, "options"),
            engine=engine or self._exits.enter_context(ToyEngine()),
            log=logging.LoggerAdapter(logging.getLogger("tritonpy.testing")),
            metrics=ModelMetrics(self.metrics), memory=memory or ModelMemory(),
        )  # fmt: skip

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.push(self._exits.pop_all())
            model = self.model
            model.config = self._normalized(model.config)
            model.config = self._normalized(merge_auto_complete(model.config, self.backend.auto_complete(model)))
            model.layout = BatchLayout.of(model.config)
            model.output_types = {item.name: DATATYPE_OF_NUMBER[item.data_type].name for item in model.config.output}
            stack.callback(model.metrics.close)
            make: Callable[[ModelContext, InstanceContext], Backend] = self.backend
            if isolated(model, self.backend):
                make = partial(IsolatedInstance, self.backend)
            if not loads_elsewhere(model, self.backend):
                model.shared = self.backend.load(model)
                stack.callback(self.backend.unload, model.shared)
            elif model.shared is not None:  # opened to complete the configuration
                self.backend.unload(model.shared)
                model.shared = None
            thread = stack.enter_context(ThreadPoolExecutor(1, f"{model.name}_0"))
            self._context = self._first_instance()
            instance = thread.submit(make, model, self._context).result()
            self.instance, self._thread = instance, thread
            stack.callback(self.close_instance)
            self._exits = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._exits.close()

    def request(self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None) -> InferRequest:
        """Return a request of `inputs` that asks for `outputs` (None: all)."""
        tensors = {name: Tensor.from_numpy(name, array) for name, array in inputs.items()}
        rows = next((len(array) for array in inputs.values()), 1) if self.model.config.max_batch_size > 0 else 1
        wanted = None if outputs is None else {name: OutputSpec(name) for name in outputs}
        return InferRequest(
            self.model.name, tensors, self.witness.sink, 1, outputs=wanted, owner=self.witness, batch_size=rows,
            accepts_decoupled=self.model.config.model_transaction_policy.decoupled,
        )  # fmt: skip

    def execute(self, *requests: InferRequest) -> list[list[InferResponse]]:
        """Run `requests` as one batch; return the answers of each once all have their final one.

        What `execute` raises answers the requests that have no final answer yet; requests that are handed back run again.
        Raises AssertionError for a request without a final answer, or with two.
        """
        waiting = list(requests)
        while waiting:
            self._thread.submit(self._run, waiting).result()
            self.witness.wait(*waiting)
            waiting = self.witness.take_rescheduled()
        self.witness.check(*requests)
        return [self.witness.answers(request) for request in requests]

    def memory_usage(self) -> list[MemoryUsage]:
        """Return what the model says that it holds, what its instances share included, asked on this thread as a server does."""
        shared = () if self.model.shared is None else self.backend.shared_memory_usage(self.model.shared)
        return [*shared, *self.instance.memory_usage()]

    def close_instance(self) -> None:
        """Close the instance, on its thread; leaving the context does so too."""
        self._thread.submit(self.instance.close).result()

    def _normalized(self, config: ModelConfig) -> ModelConfig:
        return normalize(config, self.gpus, self.backend.default_instance_count, self.backend.uses_gpu)

    def _first_instance(self) -> InstanceContext:
        seats = roster_change((), self.model.config, 0).added
        assert seats, "the configuration asks for no instance that could be made with these GPUs"
        context = seats[0].context
        context.name = f"{self.model.name}_0"
        return context

    def _run(self, requests: list[InferRequest]) -> None:
        batch = Batch(requests, model=self.model, instance=self._context, start_ns=now_ns())
        for request in requests:
            request.batch = batch
        try:
            self.instance.execute(batch)
        except Exception as error:
            failure = error if isinstance(error, TritonError) else Internal(str(error))
            for request in requests:
                if not request.answered:
                    request.respond(InferResponse.failed(request, failure))
