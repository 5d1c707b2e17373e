"""The same models in other engines: tasks of a Ray cluster, Ray Data, and Spark."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, CallbackSink, InferRequest, InferResponse, Tensor, now_ns
from tritonpy_batch.options import BatchOptions, JobFailed
from tritonpy_batch.progress import ProgressView
from tritonpy_batch.summary import JobProgress, JobSummary
from tritonpy_batch.targets import NO_SOCKETS, running_model

Arrays = Mapping[str, npt.NDArray[Any]]


class ModelFunction:
    """Calls a model with arrays [rows, ...]; loads it on the first call in each process.

    It can be pickled, so that other engines can send it to their workers.
    """

    def __init__(self, model: str, repository: str) -> None:
        self._model = model
        self._repository = repository
        self._stack: ExitStack | None = None
        self._engine: Any = None
        self._inputs: dict[str, str] = {}
        self._batch_size = 1

    def __reduce__(self) -> tuple[type[ModelFunction], tuple[str, str]]:
        return ModelFunction, (self._model, self._repository)

    def __call__(self, batch: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Return the outputs for a batch of any number of rows.

        Raises TritonError if the model refuses it.
        """
        self._open()
        inputs = {name: batch[name] for name in self._inputs if name in batch}
        rows = len(next(iter(inputs.values())))
        parts = [
            self._infer({name: array[at : at + self._batch_size] for name, array in inputs.items()})
            for at in range(0, rows, self._batch_size)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @property
    def input_names(self) -> list[str]:
        """The inputs of the model in order; loads it."""
        self._open()
        return list(self._inputs)

    def close(self) -> None:
        """Unload the model; without it, the model stays until the process ends."""
        if self._stack is not None:
            self._stack.close()
        self._stack = self._engine = None

    def _open(self) -> None:
        if self._engine is not None:
            return
        options = BatchOptions(model=self._model, inputs=(), output="", repository=self._repository)
        self._stack = ExitStack()
        self._engine = self._stack.enter_context(running_model(options, NO_SOCKETS)).engine
        self._inputs = {
            each.name: each.datatype for each in self._engine.model_metadata(self._model).inputs
        }
        self._batch_size = self._engine.model_config(self._model).max_batch_size or 1

    def _infer(self, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
        answers: queue.SimpleQueue[InferResponse] = queue.SimpleQueue()
        request = InferRequest(
            self._model,
            {name: _tensor(name, self._inputs[name], array) for name, array in arrays.items()},
            CallbackSink(lambda _, response: answers.put(response)),
            received_ns=now_ns(),
        )
        self._engine.infer(request)
        response = answers.get()
        if response.error is not None:
            raise response.error
        return {tensor.name: tensor.numpy() for tensor in response.outputs}


class PositionalFunction:
    """Calls a model with its inputs in order; one output is returned as an array."""

    def __init__(self, model: str, repository: str) -> None:
        self._function = ModelFunction(model, repository)

    def __call__(self, *arrays: npt.NDArray[Any]) -> Any:
        """Return the only output, or a dictionary of outputs."""
        names = self._function.input_names
        outputs = self._function(dict(zip(names, arrays, strict=False)))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def close(self) -> None:
        """Unload the model."""
        self._function.close()


def predict(dataset: Any, model: str, repository: str, **resources: Any) -> Any:
    """Return a Ray dataset with the outputs of a model as further columns.

    `dataset` has one column per input of the model. `resources` are arguments of `map_batches`,
    such as `concurrency=4` or `num_gpus=1`: each actor holds an engine with the model.
    """
    resources.setdefault("concurrency", 1)
    return dataset.map_batches(
        _RayActor,
        fn_constructor_kwargs={"model": model, "repository": repository},
        batch_format="numpy",
        **resources,
    )


class _RayActor:
    """What an actor of Ray Data runs."""

    def __init__(self, model: str, repository: str) -> None:
        self._function = ModelFunction(model, repository)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the batch with the outputs."""
        return {**batch, **self._function(batch)}


def make_predict_fn(model: str, repository: str) -> Callable[[], Callable[..., Any]]:
    """Return the function that Spark's `predict_batch_udf` takes.

    The inputs are passed in the order of the model. One output is returned as an array, several as
    a dictionary.
    """

    return partial(PositionalFunction, model, repository)


def run_on_ray(options: BatchOptions, address: str, tasks: int, view: ProgressView) -> JobSummary:
    """Run a job in tasks of a Ray cluster, which share it by leases in the output folder.

    `address` is that of `ray.init`; `tasks` 0 is one per node. Input, output and repository must be
    readable on every node. Raises JobFailed if Ray is missing or every task fails.
    """
    try:
        import ray
    except ImportError as error:
        raise JobFailed("--ray needs Ray: pip install 'tritonpy-batch[ray]'") from error
    from tritonpy_batch.job import run_batch

    # ray.init keeps a connection that the caller made
    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    remote = ray.remote(max_retries=3)(_run_task)
    waiting = [remote.remote(options) for _ in range(tasks or max(len(ray.nodes()), 1))]
    failure: Exception | None = None
    view.update(JobProgress())
    while waiting:
        ready, waiting = ray.wait(waiting)
        try:
            ray.get(ready)
        except ray.exceptions.RayError as error:
            failure = error
    try:
        return run_batch(msgspec.structs.replace(options, force=False), view)
    except JobFailed as error:
        raise error from failure


def _run_task(options: BatchOptions) -> None:
    from tritonpy_batch.job import run_batch

    run_batch(options)


def _tensor(name: str, datatype: str, array: npt.NDArray[Any]) -> Tensor:
    if datatype == "BYTES":
        return Tensor.from_numpy(name, np.asarray(array, np.object_))
    return Tensor.from_numpy(name, np.asarray(array, DTYPES[datatype]))
