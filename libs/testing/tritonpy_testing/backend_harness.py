"""A harness that runs a backend without a server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt

from tritonpy import (
    Backend,
    Batch,
    Engine,
    InferRequest,
    InferResponse,
    InstanceContext,
    Internal,
    MemoryUsage,
    ModelContext,
    ModelMemory,
    OutputSpec,
    Tensor,
    TritonError,
    now_ns,
)
from tritonpy.config import DATATYPE_OF_NUMBER, decode_options, merge_auto_complete, normalize
from tritonpy.execution import BatchLayout, chosen_runner, loads_in_worker, plan_instance_change
from tritonpy.metrics import CustomMetrics, ModelMetrics
from tritonpy.plugins import make_plugin_manager
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine

Array = npt.NDArray[Any]


class BackendHarness:
    """One model version with one instance, executed in its own thread as in a server.

    Entering the context manager loads the model from `folder`/1, leaving it closes and unloads the
    model.

    - `recorder` records the responses, `metrics` holds the metrics that the model creates.
    - An instance that the configuration or the backend isolates runs in its own process.
    - `gpus` are the GPUs of the machine. The instance is the first one that the configuration
      requests.
    - `memory` is the model's share of the server's memory pools.
    """

    def __init__(
        self, backend: type[Backend], config: ModelConfig, folder: Path,
        options: Mapping[str, Any] | None = None, engine: Engine | None = None,
        gpus: Sequence[int] = (), memory: ModelMemory | None = None,
    ) -> None:  # fmt: skip
        self.backend = backend
        self.gpus = gpus
        self.recorder = RecordingSink()
        self.metrics = CustomMetrics()
        self._exits = ExitStack()
        (folder / "1").mkdir(parents=True, exist_ok=True)
        self.model = ModelContext(
            name=config.name or folder.name, version=1, config=config, directory=folder,
            path=folder / "1",
            parameters={key: value.string_value for key, value in config.parameters.items()},
            output_types={}, options=decode_options(backend.Options, options or {}, "options"),
            engine=engine or self._exits.enter_context(ToyEngine()),
            log=logging.LoggerAdapter(logging.getLogger("tritonpy_testing")),
            metrics=ModelMetrics(self.metrics), memory=memory or ModelMemory(),
        )  # fmt: skip

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.push(self._exits.pop_all())
            model = self.model
            model.config = self._normalized(model.config)
            model.config = self._normalized(
                merge_auto_complete(model.config, self.backend.auto_complete(model))
            )
            model.layout = BatchLayout.of(model.config)
            model.output_types = {
                item.name: DATATYPE_OF_NUMBER[item.data_type].name for item in model.config.output
            }
            stack.callback(model.metrics.close)
            runner = (
                make_plugin_manager()
                .get("tritonpy_runners", chosen_runner(model, self.backend), "runner")
                .load()
            )
            make: Callable[[ModelContext, InstanceContext], Backend] = partial(
                runner.single_instance, self.backend
            )
            if not loads_in_worker(model, self.backend):
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

    def request(
        self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None
    ) -> InferRequest:
        """Return a request with `inputs` for the outputs `outputs` (None: all)."""
        tensors = {name: Tensor.from_numpy(name, array) for name, array in inputs.items()}
        rows = (
            next((len(array) for array in inputs.values()), 1)
            if self.model.config.max_batch_size > 0
            else 1
        )
        requested = None if outputs is None else {name: OutputSpec(name) for name in outputs}
        return InferRequest(
            self.model.name, tensors, self.recorder.sink, 1, outputs=requested, owner=self.recorder,
            batch_size=rows,
            accepts_decoupled=self.model.config.model_transaction_policy.decoupled,
        )  # fmt: skip

    def execute(self, *requests: InferRequest) -> list[list[InferResponse]]:
        """Run `requests` as one batch and return the responses of each request.

        Returns when all requests have their final response. An exception of `execute` becomes the
        response of the requests without a final one. Rescheduled requests run again. Raises
        AssertionError for a request without a final response, or with two.
        """
        waiting = list(requests)
        while waiting:
            self._thread.submit(self._run, waiting).result()
            self.recorder.wait(*waiting)
            waiting = self.recorder.take_rescheduled()
        self.recorder.check(*requests)
        return [self.recorder.responses(request) for request in requests]

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the reported memory of the instance and of the data shared by all instances."""
        shared = (
            () if self.model.shared is None else self.backend.shared_memory_usage(self.model.shared)
        )
        return [*shared, *self.instance.memory_usage()]

    def close_instance(self) -> None:
        """Close the instance in its thread. Leaving the context does so, too."""
        self._thread.submit(self.instance.close).result()

    def _normalized(self, config: ModelConfig) -> ModelConfig:
        return normalize(
            config, self.gpus, self.backend.default_instance_count, self.backend.uses_gpu
        )

    def _first_instance(self) -> InstanceContext:
        instances = plan_instance_change((), self.model.config, 0).added
        assert instances, "the configuration requests no instance that these GPUs allow"
        context = instances[0].context
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
                if not request.finished:
                    request.respond(InferResponse.failed(request, failure))
