"""The batch policy `c`: a batching library of Triton's C interface limits the batches."""

from __future__ import annotations

import ctypes
import logging
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tritonpy import InferRequest, TritonError
from tritonpy.config import config_to_dict
from tritonpy.scheduling import BatchPolicy, Pending, Policies, Run, Wait
from tritonpy_backend_c.alias import provide_names
from tritonpy_backend_c.elf import read_library
from tritonpy_backend_c.host import host
from tritonpy_backend_c.library import check
from tritonpy_backend_c.requests import RequestWriter

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

log = logging.getLogger("tritonpy.scheduler")

PARAMETER = "TRITON_BATCH_STRATEGY_PATH"
_NO_OWNER = -1  # of metrics and calls


class BatchLibraryPolicy(BatchPolicy):
    """Asks the model's library which requests share a batch. The default policy does the rest.

    The library sees a request once per batch, in the order of the queue. A request that it refuses
    starts the next batch. One that it refuses as the first of a batch runs alone.
    """

    def __init__(
        self, config: ModelConfig, version: int, folder: Path, default: BatchPolicy
    ) -> None:
        super().__init__(config)
        self._batch = _RunningBatch(config, version, folder)
        self._default = default

    @classmethod
    def create(
        cls, config: ModelConfig, version: int, folder: Path, others: Policies
    ) -> BatchLibraryPolicy:
        return cls(config, version, folder, others("preferred"))

    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        count = self._batch.included(pending.requests)
        if count < len(pending.requests):
            pending = pending.first(max(1, count))
        return self._default.plan(pending, now_ns)

    def cut(self, pending: Pending, count: int, now_ns: int) -> None:
        self._batch.restart()
        self._default.cut(pending, count, now_ns)

    def instances_changed(self, count: int) -> None:
        self._default.instances_changed(count)


class _RunningBatch:
    """The batch that the library has been called for, and its requests."""

    def __init__(self, config: ModelConfig, version: int, folder: Path) -> None:
        self._name = config.name
        self._library = host().library
        self._writer = RequestWriter(self._library, config)
        self._requests: list[InferRequest] = []
        self._texts: list[bytes] = []  # which the library may read until the batch ends
        self._refused: InferRequest | None = None
        self._started = False
        self._handle = ctypes.c_void_p()
        path = Path(config.parameters[PARAMETER].string_value)
        provide_names(read_library(path))
        check(
            self._library,
            self._library.strategy_open(
                str(path).encode(), self._name.encode(), version, str(folder).encode(),
                msgspec.json.encode(config_to_dict(config)), _NO_OWNER, ctypes.byref(self._handle),
            ),
        )  # fmt: skip
        log.info("model %s: batches are limited by %s", self._name, path)
        weakref.finalize(self, self._library.strategy_close, self._handle)
        weakref.finalize(self, self._writer.close)

    def restart(self) -> None:
        """End the batch. The next call of `included` starts another one."""
        self._requests.clear()
        self._texts.clear()
        self._refused = None
        self._started = False

    def included(self, requests: Sequence[InferRequest]) -> int:
        """Return how many of the first requests the library lets into the batch."""
        known = self._requests
        if len(known) > len(requests) or any(
            old is not new for old, new in zip(known, requests, strict=False)
        ):
            self.restart()  # some request left the queue
        count = len(known)
        if self._refused is not None and count < len(requests):
            if self._refused is requests[count]:
                return count
            self.restart()
            count = 0
        if not self._started:
            self._call("initialization", self._library.strategy_start(self._handle))
            self._started = True
        for request in requests[count:]:
            if not self._include(request):
                self._refused = request
                break
            known.append(request)
        return len(known)

    def _include(self, request: InferRequest) -> bool:
        try:
            words, text = self._writer.pack_one(request)
        except TritonError as error:
            log.error("model %s: a request cannot be batched: %s", self._name, error.message)
            return False
        self._texts.append(text)
        included = ctypes.c_int64()
        self._call(
            "include",
            self._library.strategy_include(self._handle, words, text, ctypes.byref(included)),
        )
        return bool(included.value)

    def _call(self, function: str, code: int) -> None:
        """Log an error of the library as Triton does; the batch goes on."""
        try:
            check(self._library, code)
        except TritonError as error:
            log.error(
                "Custom batching %s function failed for model %s: %s",
                function, self._name, error.message,
            )  # fmt: skip
