"""What a model of this process asks and tells the server, beside inference."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import InvalidArgument, Metric, MetricFamily, MetricKind, ModelContext, NotFound, TritonError, incident
from tritonpy_backend_python.in_process.errands import Errands
from tritonpy_worker.api.errors import TritonModelException

_Arguments = Mapping[str, Any]


class Questions:
    """The verbs of `Host`; what is a number in a worker, a metric or a family, is the server's own object here."""

    def __init__(self, model: ModelContext, errands: Errands) -> None:
        self._model = model
        self._engine = model.engine
        self._errands = errands
        self._verbs: dict[str, Callable[[_Arguments], Any]] = {
            "metric_family": self._metric_family,
            "metric": _metric,
            "metric_value": lambda said: said["metric"].value(),
            "metric_add": lambda said: said["metric"].increment(said["value"]),
            "metric_set": lambda said: said["metric"].set(said["value"]),
            "metric_observe": lambda said: said["metric"].observe(said["value"]),
            "metric_drop": self._drop,
            "metric_family_drop": self._drop,
            "load_model": self._load_model,
            "unload_model": lambda said: self._engine.unload_model(said["name"], said["unload_dependents"]),
            "is_model_ready": self._is_model_ready,
        }

    def ask(self, verb: str, arguments: _Arguments) -> Any:
        """Return the answer. Raises TritonModelException with the server's reason."""
        try:
            return self._verbs[verb](arguments)
        except TritonError as error:
            raise TritonModelException(error.message) from None
        except Exception as error:
            raise TritonModelException(incident(self._model.log, f"'{verb}' of a model", error).message) from None

    def tell(self, verb: str, arguments: _Arguments) -> None:
        """Do it; what goes wrong is logged."""
        try:
            self.ask(verb, arguments)
        except TritonModelException as error:
            self._model.log.warning("'%s' failed: %s", verb, error)

    def _metric_family(self, said: _Arguments) -> MetricFamily:
        self._errands.begin()
        return self._model.metrics.family(said["name"], said["description"], MetricKind[said["kind"]])

    def _drop(self, said: _Arguments) -> None:
        self._errands.add(said["id"].drop)  # a destructor tells this, perhaps of a thread that holds the metrics' lock

    def _load_model(self, said: _Arguments) -> None:
        files = {path: b64decode(content) for path, content in said["files"].items()}
        self._engine.load_model(said["name"], said["config"] or None, files or None)

    def _is_model_ready(self, said: _Arguments) -> bool:
        try:
            return self._engine.is_model_ready(said["name"], said["version"])
        except (InvalidArgument, NotFound):
            return False


def _metric(said: _Arguments) -> Metric:
    family: MetricFamily = said["family"]
    return family.metric(said["labels"], said["buckets"])
