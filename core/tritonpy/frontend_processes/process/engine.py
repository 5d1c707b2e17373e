"""The engine, as the frontends of this process see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tritonpy.api.engine import ModelMetadata
from tritonpy.errors import Cancelled, DecoupledRefused, TritonError
from tritonpy.frontend_processes.process.asking import Asking
from tritonpy.frontend_processes.process.sent import Sent
from tritonpy.runners.workers.asked_engine import AskedEngine
from tritonpy.types import InferRequest, Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class FrontendEngine(AskedEngine):
    """`infer` sends and returns, what the engine refuses comes back as an answer; but that a caller of one answer asks a decoupled model, which frontends
    hear at once, is known here: configurations and metadata are kept until the engine's process says that models have changed.
    """

    def __init__(self, asking: Asking, sent: Sent) -> None:
        super().__init__(asking.ask)
        self._asking = asking
        self._sent = sent
        self._configs: dict[tuple[str, int], ModelConfig] = {}
        self._metadata: dict[tuple[str, int], ModelMetadata] = {}
        self._parameters: dict[tuple[str, int], frozenset[str] | None] = {}
        self._single: set[tuple[str, int]] = set()  # models that answer once

    def forget(self) -> None:
        """Ask anew what is known of models."""
        # Fresh ones: a thread that asks just now keeps what it hears in the old.
        self._configs, self._metadata, self._parameters, self._single = {}, {}, {}, set()

    def infer(self, request: InferRequest) -> None:
        if not request.accepts_decoupled and (request.model_name, request.model_version) not in self._single:
            self._check_caller(request)
        if request.cancelled:
            raise Cancelled("Request cancelled")
        self._sent.send(request)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        configs = self._configs
        config = configs.get((name, version))
        if config is None:
            config = configs[name, version] = super().model_config(name, version)
        return config

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        kept = self._metadata
        metadata = kept.get((name, version))
        if metadata is None:
            metadata = kept[name, version] = super().model_metadata(name, version)
        return metadata

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        kept = self._parameters
        if (name, version) not in kept:
            kept[name, version] = super().request_parameters(name, version)
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
        said = {"name": name, "config": config, "versions": list(versions)}
        self._asking.ask_with("load_model", said, [row])

    def _check_caller(self, request: InferRequest) -> None:
        name, version = request.model_name, request.model_version
        single = self._single
        try:
            decoupled = self.model_config(name, version).model_transaction_policy.decoupled
        except TritonError:
            return  # the engine says what is wrong, in its order
        if decoupled:
            raise DecoupledRefused(f"model '{name}' answers any number of times, the caller takes one answer")
        single.add((name, version))
