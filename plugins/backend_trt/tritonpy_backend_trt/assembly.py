"""Builds what an instance is made of: contexts, memory, streams and graphs on its GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from tritonpy import InstanceContext, ModelContext
from tritonpy_backend_trt.buffers import BufferSet, buffer_plan, buffer_set
from tritonpy_backend_trt.context import Context
from tritonpy_backend_trt.engines import Engines, OpenEngine
from tritonpy_backend_trt.flight import EventPool
from tritonpy_backend_trt.graph_specs import graph_specs
from tritonpy_backend_trt.graphs import Graphs, with_batch_dimension
from tritonpy_backend_trt.inputs import InputReader
from tritonpy_backend_trt.limits import narrowed
from tritonpy_backend_trt.pipeline import Parts
from tritonpy_backend_trt.profiles import check_index, named_profiles
from tritonpy_backend_trt.signature import Signature
from tritonpy_backend_trt.streams import Streams

if TYPE_CHECKING:
    from tritonpy_backend_trt.options import TensorRtOptions
    from tritonpy_protos.model_config_pb2 import ModelConfig


def assembled(model: ModelContext, instance: InstanceContext, engines: Engines, opened: OpenEngine) -> Parts:
    """Return the parts of `instance`, on the calling thread's GPU. Raises a TritonError where something cannot be had."""
    settings, cuda, signature, config = engines.settings, engines.cuda, opened.signature, model.config
    options: TensorRtOptions = model.options  # type: ignore[assignment]
    reader = InputReader(
        model.name,
        signature.inputs,
        config.max_batch_size > 0,
        options.coalesce_request_input,
        model.memory.pinned_input,
    )
    alone = options.execution_policy == "DEVICE_BLOCKING" and not config.HasField("sequence_batching")
    with ExitStack() as stack:
        streams = Streams(cuda, settings)
        stack.callback(streams.close)
        contexts = _contexts(model, instance, engines, opened, streams)
        sets = _buffer_sets(model, instance, engines, signature, contexts)
        _clear(engines, sets, streams)
        graphs = Graphs(cuda, streams.work, instance.name, model.log)
        stack.callback(graphs.close)
        _capture(model, graphs, contexts, sets)
        stack.pop_all()
    return Parts(
        cuda, instance.device_id, signature, contexts, sets, streams, graphs, EventPool(cuda, settings.busy_wait), reader,
        opened.launching if alone else nullcontext(), model.memory.pinned_output, _outputs(config), _rowed(config),
    )  # fmt: skip


def _buffer_sets(
    model: ModelContext, instance: InstanceContext, engines: Engines, signature: Signature, contexts: Sequence[Context]
) -> list[BufferSet]:
    plan = buffer_plan(signature, contexts)
    return [
        buffer_set(engines.trt, model.memory, instance.device_id, signature, plan)
        for _ in range(engines.settings.buffer_sets)
    ]


def _contexts(
    model: ModelContext, instance: InstanceContext, engines: Engines, opened: OpenEngine, streams: Streams
) -> list[Context]:
    signature = opened.signature
    strategy = getattr(engines.trt.ExecutionContextAllocationStrategy, engines.settings.strategy)
    contexts = []
    for index, name in named_profiles(instance.profiles).items():
        check_index(index, name, instance.name, len(signature.profiles))
        raw = opened.context(strategy, index, streams.work)
        profile = narrowed(signature.profiles[index], model.config, signature)
        contexts.append(Context(raw, profile, name, signature, instance.name))
    engines.cuda.await_stream(streams.work)
    for context in contexts:
        context.widest()
    return contexts


def _clear(engines: Engines, sets: Sequence[BufferSet], streams: Streams) -> None:
    """What was in the memory before must not be taken for an index, or for anybody's data."""
    for buffers in sets:
        for block in buffers.blocks.values():
            engines.cuda.zero(block.address, block.byte_size, streams.work)
    engines.cuda.await_stream(streams.work)


def _capture(model: ModelContext, graphs: Graphs, contexts: Sequence[Context], sets: Sequence[BufferSet]) -> None:
    specs = graph_specs(model.config)
    if not specs:
        return
    if any(context.profile.values for context in contexts) or any(buffers.growing for buffers in sets):
        model.log.warning(
            "Detected shape tensor, or an output whose shape depends on data: CUDA graph is not captured for %s",
            model.name,
        )
        return
    graphs.capture(specs, contexts, sets, with_batch_dimension(model.config))


def _outputs(config: ModelConfig) -> list[str]:
    names = [field.name for field in config.output]
    return [*names, *[state.output_name for state in config.sequence_batching.state if state.output_name not in names]]


def _rowed(config: ModelConfig) -> set[str]:
    if config.max_batch_size == 0:
        return set()
    return set(_outputs(config)) - {name for each in config.batch_output for name in each.target_name}
