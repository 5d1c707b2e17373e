"""A model of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import tritonpy
from tritonpy.config import config_to_dict
from tritonpy_tritonserver_api.errors import InvalidArgumentError, translated
from tritonpy_tritonserver_api.names import ModelBatchFlag, ModelTxnPropertyFlag
from tritonpy_tritonserver_api.request import InferenceRequest
from tritonpy_tritonserver_api.response import AsyncResponseIterator, ResponseIterator

if TYPE_CHECKING:
    from tritonpy_tritonserver_api.server import Server, StartedServer


class Model:
    """A version of a model; -1 is the version that the server selects.

    `state` and `reason` are those of the repository index, if the object is from there. Get one
    from `Server.model` or `Server.models`.
    """

    def __init__(
        self,
        server: Server | StartedServer,
        name: str,
        version: int = -1,
        state: str | None = None,
        reason: str | None = None,
    ) -> None:
        self._server: StartedServer = server.started()
        self.name = name
        self.version = version
        self.state = state
        self.reason = reason

    def __repr__(self) -> str:
        return str({"name": self.name, "version": self.version, "state": self.state})

    @property
    def engine(self) -> tritonpy.Engine:
        """The engine of the server. Raises `InvalidArgumentError` after the server stopped."""
        return self._server.engine

    def with_version(self, version: int) -> Model:
        """Return the object of another version."""
        return Model(self._server, self.name, version, self.state, self.reason)

    def create_request(self, **kwargs: Any) -> InferenceRequest:
        """Return a request to this model. Arguments are the fields of `InferenceRequest`."""
        kwargs.pop("model", None)
        return InferenceRequest(model=self, **kwargs)

    def infer(
        self,
        inference_request: InferenceRequest | None = None,
        raise_on_error: bool = True,
        **kwargs: Any,
    ) -> ResponseIterator:
        """Send a request, and return an iterator over its responses.

        Without a request, `kwargs` are the fields of one. With `raise_on_error` the iterator raises
        the error of a response, otherwise the response has it. Raises what the server raises for a
        request that it refuses: `NotFoundError`, `InvalidArgumentError`, `UnavailableError`.
        """
        return ResponseIterator(self._request(inference_request, kwargs), raise_on_error)

    def async_infer(
        self,
        inference_request: InferenceRequest | None = None,
        raise_on_error: bool = True,
        **kwargs: Any,
    ) -> AsyncResponseIterator:
        """Send a request, and return an asynchronous iterator over its responses.

        Arguments and errors are those of `infer`.
        """
        return AsyncResponseIterator(self._request(inference_request, kwargs), raise_on_error)

    def _request(self, given: InferenceRequest | None, fields: dict[str, Any]) -> InferenceRequest:
        if given is None:
            return self.create_request(**fields)
        if given.model.name != self.name:
            raise InvalidArgumentError(
                f"the request is for model '{given.model.name}', not for '{self.name}'"
            )
        return given

    def metadata(self) -> dict[str, Any]:
        """Return name, versions, platform, inputs and outputs. Raises `NotFoundError`."""
        with translated():
            found = self.engine.model_metadata(self.name, self.version)
        result: dict[str, Any] = msgspec.to_builtins(found)
        return result

    def ready(self) -> bool:
        """Return whether the model serves; False for an unknown one."""
        try:
            return self.engine.is_model_ready(self.name, self.version)
        except tritonpy.TritonError:
            return False

    def config(self, config_version: int = 1) -> dict[str, Any]:
        """Return the completed configuration, with every default.

        Raises `NotFoundError`, and `InvalidArgumentError` for a `config_version` other than 1.
        """
        if config_version != 1:
            raise InvalidArgumentError(
                f"model configuration version {config_version} not supported, supported versions "
                "are: 1"
            )
        with translated():
            return config_to_dict(self.engine.model_config(self.name, self.version))

    def statistics(self) -> dict[str, Any]:
        """Return the statistics, as the protocol's statistics request does."""
        with translated():
            found = self.engine.statistics(self.name, self.version)
        return {"model_stats": msgspec.to_builtins(found)}

    def batch_properties(self) -> ModelBatchFlag:
        """Return whether the first dimension is the batch. Raises `NotFoundError`."""
        with translated():
            config = self.engine.model_config(self.name, self.version)
        return ModelBatchFlag.FIRST_DIM if config.max_batch_size > 0 else ModelBatchFlag.UNKNOWN

    def transaction_properties(self) -> ModelTxnPropertyFlag:
        """Return whether the model sends one response per request. Raises `NotFoundError`."""
        with translated():
            config = self.engine.model_config(self.name, self.version)
        decoupled = config.model_transaction_policy.decoupled
        return ModelTxnPropertyFlag.DECOUPLED if decoupled else ModelTxnPropertyFlag.ONE_TO_ONE
