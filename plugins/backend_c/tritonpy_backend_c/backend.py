"""The backend class: one instance of a model in C."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tritonpy import (
    Backend,
    Batch,
    InferRequest,
    InferResponse,
    InstanceContext,
    Internal,
    MemoryUsage,
    ModelContext,
    Tensor,
    error_of,
    now_ns,
)
from tritonpy.config import config_from_json
from tritonpy.execution import chosen_runner
from tritonpy_backend_c.completion import completed_config, preferred_groups_of
from tritonpy_backend_c.host import host
from tritonpy_backend_c.library import check
from tritonpy_backend_c.model import CModel, preferred_groups, read_usage
from tritonpy_backend_c.options import CBackendOptions
from tritonpy_backend_c.requests import NewStates, RequestWriter
from tritonpy_backend_c.wire import (
    EMPTY,
    FINAL,
    RELEASE,
    RELEASED,
    RESCHEDULE,
    RESPONSE,
    STATE,
    TRACE,
    WATCH,
    Buffers,
    HostEvent,
    KnownTensors,
    Reader,
    Words,
)
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_KINDS = {"AUTO": 0, "CPU": 1, "GPU": 2, "MODEL": 3}
_GROUP_KINDS = (  # by TRITONSERVER_InstanceGroupKind
    ModelInstanceGroup.KIND_AUTO,
    ModelInstanceGroup.KIND_CPU,
    ModelInstanceGroup.KIND_GPU,
    ModelInstanceGroup.KIND_MODEL,
)
_HEADER = 6  # words before the events of an execution


class CBackend(Backend):
    """Runs a backend that was written for Triton's C interface: `libtriton_NAME.so`.

    `TRITONBACKEND_ModelInstanceExecute` runs without the interpreter's lock. Responses that the
    backend sends while it runs are read when it returns. Later ones are read by the host's thread.
    """

    Options: ClassVar[type[CBackendOptions]] = CBackendOptions
    isolation: ClassVar[str] = "process"

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        if chosen_runner(model, cls) == "thread":
            opened = model.shared = CModel(model, completes=True)
            text = opened.changed_config()
        else:
            text = completed_config(model)
        if text is None:
            return model.config
        return config_from_json(
            text, f"the configuration that backend '{model.config.backend}' set"
        )

    @classmethod
    def preferred_groups(cls, model: ModelContext) -> list[ModelInstanceGroup]:
        groups = model.config.instance_group
        if groups and all(group.count > 0 for group in groups):
            return []  # nothing is left open
        here = chosen_runner(model, cls) == "thread"
        found = preferred_groups(model) if here else preferred_groups_of(model)
        return [
            ModelInstanceGroup(kind=_GROUP_KINDS[each.kind], count=each.count, gpus=each.gpus)
            for each in found
        ]

    @classmethod
    def load(cls, model: ModelContext) -> CModel:
        opened = model.shared
        if isinstance(opened, CModel):
            opened.use_context(model)
            return opened
        return CModel(model, completes=False)

    @classmethod
    def unload(cls, shared: object) -> None:
        if isinstance(shared, CModel):
            shared.close()

    @classmethod
    def worker_environment(cls, model: ModelContext) -> Mapping[str, str]:
        options = model.options
        return options.environment if isinstance(options, CBackendOptions) else {}

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        return shared.memory_usage() if isinstance(shared, CModel) else ()

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._model: CModel = model.shared
        self._library = self._model.library
        self._host = host()
        self._buffers = Buffers()
        self._tensors = KnownTensors(self._library)
        self._tags = itertools.count()
        self._open: dict[int, InferRequest] = {}  # without a final response
        # What the backend may read: requests that are not released, with the scheduler's tensors.
        self._held: dict[int, object] = {}
        self._watched: set[int] = set()
        self._writer = RequestWriter(self._library, model.config)
        self._states = NewStates(model.config)
        self.batch: Batch | None = None  # the one that executes
        self._closed = False
        self.number = self._host.add_instance(self)
        self._handle = ctypes.c_void_p()
        try:
            words, text = _description(model, instance).pack()
            check(
                self._library,
                self._library.instance_open(
                    self._model.handle, self.number, words, text, ctypes.byref(self._handle)
                ),
            )
        except BaseException:
            self._host.remove_instance(self.number)
            self._writer.close()
            raise

    def execute(self, batch: Batch) -> None:
        requests = batch.requests
        tags = [next(self._tags) for _ in requests]
        words, text, added = self._writer.pack(batch, tags)
        for tag, request in zip(tags, requests, strict=True):
            self._open[tag] = request
            self._held[tag] = request, added, text
        self.batch = batch
        buffers = self._buffers
        count = self._library.execute(self._handle, words, text, *buffers.arguments)
        self.batch = None
        try:
            self._finish(batch, tags, count)
        except BaseException:  # the server fails the requests that have no answer
            for tag in tags:
                self._end(tag)
            raise

    def _finish(self, batch: Batch, tags: Sequence[int], count: int) -> None:
        """Answer the requests of an execution, whose results are `count` words."""
        buffers = self._buffers
        header = buffers.words[:_HEADER].tolist()
        found, data = buffers.content(count, header[5])
        _set_times(batch, header[3], header[4])
        events = list(Reader(found, data, _HEADER).events(count, self._tensors))
        if header[0] >= 0:
            # Those that the backend sent before, also for requests of earlier executions, count.
            for event in events:
                self.handle(event)
            for tag in tags:
                self._held.pop(tag, None)
            raise error_of(header[0], Reader(found, data, 1).text())
        self._answer(batch, tags, events)

    def _answer(self, batch: Batch, tags: Sequence[int], events: Sequence[HostEvent]) -> None:
        """Send the responses of an execution at once if there is one for each request."""
        finals: dict[int, HostEvent] = {}
        others = []
        for event in events:
            if event.kind == RELEASE:
                self._held.pop(event.tag, None)
            elif event.kind == RESPONSE and event.flags & FINAL:
                finals[event.tag] = event
            else:
                others.append(event)
        for event in others:
            self.handle(event)
        if finals.keys() == set(tags) and self._open.keys() >= finals.keys():
            self._states.apply(batch, tags)
            for tag in tags:
                del self._open[tag]
                if finals[tag].flags & RELEASED:
                    del self._held[tag]
            batch.respond(
                [
                    self._response(request, finals[tag])
                    for request, tag in zip(batch.requests, tags, strict=True)
                ]
            )
            return
        for event in finals.values():
            self.handle(event)

    def handle(self, event: HostEvent) -> None:
        """Handle an event of a request; from the executing thread or from the host's."""
        kind, tag = event.kind, event.tag
        if kind == RESPONSE:
            final = bool(event.flags & FINAL)
            if event.flags & RELEASED:
                self._held.pop(tag, None)
            request = self._end(tag) if final else self._open.get(tag)
            if request is None:
                return
            if final and request.batch is not None and len(request.batch.requests) == 1:
                self._states.apply(request.batch, [tag])
            request.respond(self._response(request, event))
            if not final:
                self._throttle(tag, request)
        elif kind == RELEASE:
            self._held.pop(tag, None)
        elif kind == RESCHEDULE:
            request = self._end(tag)
            self._held.pop(tag, None)
            if request is not None:
                request.reschedule()
        elif kind == STATE:
            self._states.add(tag, event.outputs[0])
        elif kind == WATCH:
            self._watched.add(tag)
        elif kind == TRACE:
            request = self._open.get(tag)
            stamp = getattr(None if request is None else request.trace, "stamp", None)
            if stamp is not None:  # in a worker only the context of the trace is known
                stamp(event.text, event.flags)

    def watch(self) -> bool:
        for tag in list(self._watched):
            request = self._open.get(tag)
            if request is None or request.cancelled:
                self._watched.discard(tag)
            if request is not None and request.cancelled:
                self._library.cancel(self._handle, tag)
        return bool(self._watched)

    def is_ready(self) -> bool:
        if not self._closed:
            check(self._library, self._library.instance_ready(self._handle))
        return not self._closed

    def memory_usage(self) -> Sequence[MemoryUsage]:
        return read_usage(self._library.instance_usage, self._handle)

    def close(self) -> None:
        """Finalize the instance; requests that it still owns fail."""
        if self._closed:
            return
        self._closed = True
        code = self._library.instance_close(self._handle)
        self._host.remove_instance(self.number)
        self._writer.close()
        for tag in list(self._open):
            request = self._end(tag)
            if request is not None:
                error = Internal(
                    f"the backend of model '{self.model.name}' ended without a final response"
                )
                request.respond(InferResponse.failed(request, error))
        if self._held:
            self.model.log.warning("the backend did not release %d requests", len(self._held))
            self._held.clear()
        check(self._library, code)

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and handle.value is not None:
            self._library.instance_delete(handle)

    def _end(self, tag: int) -> InferRequest | None:
        return self._open.pop(tag, None)

    def _response(self, request: InferRequest, event: HostEvent) -> InferResponse:
        name, version = self.model.name, self.model.version
        final = bool(event.flags & FINAL)
        if event.code >= 0:
            error = error_of(event.code, event.text)
            return InferResponse((), name, version, request.id, error=error, final=final)
        outputs: Sequence[Tensor] = event.outputs
        invalid = [tensor.name for tensor in outputs if tensor.datatype == "INVALID"]
        if invalid:
            error = Internal(f"the backend sent output '{invalid[0]}' with an invalid data type")
            return InferResponse((), name, version, request.id, error=error, final=final)
        return InferResponse(
            outputs, name, version, request.id, event.parameters, final=final,
            empty=bool(event.flags & EMPTY),
        )  # fmt: skip

    def _throttle(self, tag: int, request: InferRequest) -> None:
        """Let the backend's further responses wait while the client has no room for them."""
        sink, library, handle = request.sink, self._library, self._handle
        if sink.ready(request):
            return
        library.block(handle, tag, 1)
        sink.when_ready(request, lambda: self._resume(tag))

    def _resume(self, tag: int) -> None:
        if tag in self._open:
            self._library.block(self._handle, tag, 0)


def _description(model: ModelContext, instance: InstanceContext) -> Words:
    """Return what the library needs to know of an instance."""
    words = Words(
        _KINDS.get(instance.kind, 1),
        instance.device_id,
        instance.passive,
        model.config.model_transaction_policy.decoupled,
    )
    words.text(instance.name)
    words.text(instance.host_policy)
    policy: dict[str, Any] = {instance.host_policy: {}} if instance.host_policy else {}
    words.text(msgspec.json.encode(policy).decode())
    words.add(len(instance.profiles))
    for profile in instance.profiles:
        words.text(profile)
    words.add(len(instance.secondary_devices))
    for kind, number in instance.secondary_devices:
        words.text(kind)
        words.add(number)
    return words


def _set_times(batch: Batch, start_ns: int, end_ns: int) -> None:
    """Set the times of computing that the backend reported, unless they cannot be right."""
    if 0 < start_ns <= end_ns <= now_ns() and start_ns >= batch.start_ns:
        batch.input_end_ns, batch.infer_end_ns = start_ns, end_ns
