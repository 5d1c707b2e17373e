"""Creation of an instance's resources: contexts, buffers, streams and graphs on its GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from tritonpy import InstanceContext, ModelContext
from tritonpy_backend_trt.buffers import BufferSet, buffer_plan, buffer_set
from tritonpy_backend_trt.context import ExecutionContext
from tritonpy_backend_trt.graph_specs import graph_specs
from tritonpy_backend_trt.graphs import Graphs, batch_dimension_inputs
from tritonpy_backend_trt.inputs import InputReader
from tritonpy_backend_trt.limits import narrow_profile
from tritonpy_backend_trt.pending_execution import EventPool
from tritonpy_backend_trt.pipeline import PipelineResources
from tritonpy_backend_trt.profiles import check_index, profiles_by_index
from tritonpy_backend_trt.shared_model import OpenEngine, SharedModel
from tritonpy_backend_trt.signature import Signature
from tritonpy_backend_trt.streams import Streams

if TYPE_CHECKING:
    from tritonpy_backend_trt.options import TensorRtOptions
    from tritonpy_protos.model_config_pb2 import ModelConfig


def create_resources(
    model: ModelContext, instance: InstanceContext, shared_model: SharedModel, opened: OpenEngine
) -> PipelineResources:
    """Create the resources of `instance` on the calling thread's GPU.

    Raises a `TritonError` if a resource cannot be created.
    """
    settings, cuda, signature, config = (
        shared_model.settings,
        shared_model.cuda,
        opened.signature,
        model.config,
    )
    options: TensorRtOptions = model.options  # type: ignore[assignment]
    reader = InputReader(
        model.name,
        signature.inputs,
        config.max_batch_size > 0,
        options.coalesce_request_input,
        model.memory.pinned_input,
    )
    alone = options.execution_policy == "DEVICE_BLOCKING" and not config.HasField(
        "sequence_batching"
    )
    with ExitStack() as stack:
        streams = Streams(cuda, settings)
        stack.callback(streams.close)
        contexts = _contexts(model, instance, shared_model, opened, streams)
        sets = _buffer_sets(model, instance, shared_model, signature, contexts)
        _clear_buffers(shared_model, sets, streams)
        graphs = Graphs(cuda, streams.compute, instance.name, model.log)
        stack.callback(graphs.close)
        _capture(model, graphs, contexts, sets)
        stack.pop_all()
    return PipelineResources(
        cuda, instance.device_id, signature, contexts, sets, streams, graphs,
        EventPool(cuda, settings.busy_wait), reader,
        opened.launch_lock if alone else nullcontext(), model.memory.pinned_output,
        _outputs(config), _batched_outputs(config),
    )  # fmt: skip


def _buffer_sets(
    model: ModelContext,
    instance: InstanceContext,
    shared_model: SharedModel,
    signature: Signature,
    contexts: Sequence[ExecutionContext],
) -> list[BufferSet]:
    plan = buffer_plan(signature, contexts)
    return [
        buffer_set(shared_model.trt, model.memory, instance.device_id, signature, plan)
        for _ in range(shared_model.settings.buffer_sets)
    ]


def _contexts(
    model: ModelContext,
    instance: InstanceContext,
    shared_model: SharedModel,
    opened: OpenEngine,
    streams: Streams,
) -> list[ExecutionContext]:
    signature = opened.signature
    strategy = getattr(
        shared_model.trt.ExecutionContextAllocationStrategy, shared_model.settings.strategy
    )
    contexts = []
    for index, name in profiles_by_index(instance.profiles).items():
        check_index(index, name, instance.name, len(signature.profiles))
        raw = opened.context(strategy, index, streams.compute)
        profile = narrow_profile(signature.profiles[index], model.config, signature)
        contexts.append(ExecutionContext(raw, profile, name, signature, instance.name))
    shared_model.cuda.synchronize_stream(streams.compute)
    for context in contexts:
        context.set_maximum_inputs()
    return contexts


def _clear_buffers(shared_model: SharedModel, sets: Sequence[BufferSet], streams: Streams) -> None:
    """Zero the buffers, so that old contents are not used as indexes or sent to clients."""
    for buffers in sets:
        for block in buffers.blocks.values():
            shared_model.cuda.zero_async(block.address, block.byte_size, streams.compute)
    shared_model.cuda.synchronize_stream(streams.compute)


def _capture(
    model: ModelContext,
    graphs: Graphs,
    contexts: Sequence[ExecutionContext],
    sets: Sequence[BufferSet],
) -> None:
    specs = graph_specs(model.config)
    if not specs:
        return
    if any(context.profile.values for context in contexts) or any(
        buffers.growable for buffers in sets
    ):
        model.log.warning(
            (
                "Detected shape tensor, or an output whose shape depends on data: "
                "CUDA graph is not captured for %s"
            ),
            model.name,
        )
        return
    graphs.capture(specs, contexts, sets, batch_dimension_inputs(model.config))


def _outputs(config: ModelConfig) -> list[str]:
    names = [field.name for field in config.output]
    return [
        *names,
        *[
            state.output_name
            for state in config.sequence_batching.state
            if state.output_name not in names
        ],
    ]


def _batched_outputs(config: ModelConfig) -> set[str]:
    if config.max_batch_size == 0:
        return set()
    return set(_outputs(config)) - {
        name for each in config.batch_output for name in each.target_name
    }
