"""Queries and notifications of a model in this process to the server, except inference."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import InvalidArgument, ModelContext, NotFound, TritonError
from tritonpy.frontend import internal_error
from tritonpy.metrics import Metric, MetricFamily, MetricKind
from tritonpy_backend_python.in_process.cleanup_thread import CleanupThread
from tritonpy_worker.api.errors import TritonModelException

_Arguments = Mapping[str, Any]


class ServerQueries:
    """Implements the verbs of `Host.query` and `Host.notify`.

    Arguments refer to metrics and families by object. A worker refers to them by number.
    """

    def __init__(self, model: ModelContext, cleanup: CleanupThread) -> None:
        self._model = model
        self._engine = model.engine
        self._cleanup = cleanup
        self._verbs: dict[str, Callable[[_Arguments], Any]] = {
            "metric_family": self._metric_family,
            "metric": _metric,
            "metric_value": lambda arguments: arguments["metric"].value(),
            "metric_add": lambda arguments: arguments["metric"].increment(arguments["value"]),
            "metric_set": lambda arguments: arguments["metric"].set(arguments["value"]),
            "metric_observe": lambda arguments: arguments["metric"].observe(arguments["value"]),
            "metric_drop": self._drop,
            "metric_family_drop": self._drop,
            "load_model": self._load_model,
            "unload_model": lambda arguments: self._engine.unload_model(
                arguments["name"], arguments["unload_dependents"]
            ),
            "is_model_ready": self._is_model_ready,
        }

    def query(self, verb: str, arguments: _Arguments) -> Any:
        """Return the result. Raises `TritonModelException` with the server's reason."""
        try:
            return self._verbs[verb](arguments)
        except TritonError as error:
            raise TritonModelException(error.message) from None
        except Exception as error:
            raise TritonModelException(
                internal_error(self._model.log, f"'{verb}' of a model", error).message
            ) from None

    def notify(self, verb: str, arguments: _Arguments) -> None:
        """Run the verb. Errors are logged."""
        try:
            self.query(verb, arguments)
        except TritonModelException as error:
            self._model.log.warning("'%s' failed: %s", verb, error)

    def _metric_family(self, arguments: _Arguments) -> MetricFamily:
        self._cleanup.begin()
        return self._model.metrics.family(
            arguments["name"], arguments["description"], MetricKind[arguments["kind"]]
        )

    def _drop(self, arguments: _Arguments) -> None:
        # A destructor may run in a thread that holds the metrics' lock.
        self._cleanup.add(arguments["id"].drop)

    def _load_model(self, arguments: _Arguments) -> None:
        files = {path: b64decode(content) for path, content in arguments["files"].items()}
        self._engine.load_model(arguments["name"], arguments["config"] or None, files or None)

    def _is_model_ready(self, arguments: _Arguments) -> bool:
        try:
            return self._engine.is_model_ready(arguments["name"], arguments["version"])
        except (InvalidArgument, NotFound):
            return False


def _metric(arguments: _Arguments) -> Metric:
    family: MetricFamily = arguments["family"]
    return family.metric(arguments["labels"], arguments["buckets"])
