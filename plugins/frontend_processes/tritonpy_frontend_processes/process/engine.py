"""The engine as the frontends of this process see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tritonpy import Cancelled, DecoupledRefused, InferRequest, Tensor, TritonError
from tritonpy.frontend import ModelMetadata
from tritonpy_engine_rpc.engine import RpcEngine
from tritonpy_frontend_processes.process.forwarded_requests import ForwardedRequests
from tritonpy_frontend_processes.process.rpc_client import EngineRpcClient

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class FrontendEngine(RpcEngine):
    """The engine that the frontends of this process call. `infer` sends the request and returns.

    Refusals of the engine arrive as responses. One refusal happens here, because frontends handle
    it immediately: a request for one response to a decoupled model. Configurations and metadata are
    cached until the engine's process reports changed models.
    """

    def __init__(self, rpc: EngineRpcClient, forwarded: ForwardedRequests) -> None:
        super().__init__(rpc.call)
        self._rpc = rpc
        self._forwarded = forwarded
        self._configs: dict[tuple[str, int], ModelConfig] = {}
        self._metadata: dict[tuple[str, int], ModelMetadata] = {}
        self._parameters: dict[tuple[str, int], frozenset[str] | None] = {}
        self._single: set[tuple[str, int]] = set()  # models that send one response

    def forget(self) -> None:
        """Drop the cached model metadata."""
        # New objects: concurrent calls store their results in the old ones.
        self._configs, self._metadata, self._parameters, self._single = {}, {}, {}, set()

    def infer(self, request: InferRequest) -> None:
        if (
            not request.accepts_decoupled
            and (request.model_name, request.model_version) not in self._single
        ):
            self._check_caller(request)
        if request.cancelled:
            raise Cancelled("Request cancelled")
        self._forwarded.send(request)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        configs = self._configs
        config = configs.get((name, version))
        if config is None:
            config = configs[name, version] = self.remote("model_config", name, version)
        return config

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        kept = self._metadata
        metadata = kept.get((name, version))
        if metadata is None:
            metadata = kept[name, version] = self.remote("model_metadata", name, version)
        return metadata

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        kept = self._parameters
        if (name, version) not in kept:
            kept[name, version] = self.remote("request_parameters", name, version)
        return kept[name, version]

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        row = [
            Tensor(path, "UINT8", (len(content),), np.frombuffer(content, np.uint8))
            for path, content in (files or {}).items()
        ]
        message = {"name": name, "config": config, "versions": list(versions)}
        self._rpc.call_with_tensors("load_model", message, [row])

    def _check_caller(self, request: InferRequest) -> None:
        name, version = request.model_name, request.model_version
        single = self._single
        try:
            decoupled = self.model_config(name, version).model_transaction_policy.decoupled
        except TritonError:
            return  # the engine reports the error
        if decoupled:
            raise DecoupledRefused(
                f"model '{name}' is decoupled, but the caller accepts only one response"
            )
        single.add((name, version))
