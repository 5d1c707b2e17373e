"""gRPC requests as bytes. Serialised messages may be joined: what differs between two requests is put behind what does not."""

from __future__ import annotations

from typing import Any

from tritonpy_bench.inputs.corpus import Corpus
from tritonpy_bench.load.jobs import Job
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.facts import TargetFacts
from tritonpy_bench.wire.http_messages import region_parameters
from tritonpy_bench.wire.regions import Regions
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest


class GrpcMessages:
    """Makes and keeps them: one for each step, and for each place where outputs go to shared memory."""

    def __init__(self, facts: TargetFacts, options: BenchOptions, corpus: Corpus, regions: Regions | None) -> None:
        self._facts = facts.model
        self._corpus = corpus
        self._regions = regions
        self._parameters: dict[str, Any] = dict(options.request_parameter)
        if facts.model.decoupled:
            self._parameters["triton_enable_empty_final_response"] = True
        self._made: dict[tuple[int, int], bytes] = {}

    def of(self, job: Job, place: int, request_id: str = "") -> bytes:
        """Return the request of a job that goes out at `place`."""
        key = (job.step, 0 if self._regions is None else place)
        fixed = self._made.get(key)
        if fixed is None:
            fixed = self._made[key] = self._make(job.step, place).SerializeToString()
        if not (request_id or job.sequence):
            return fixed
        more = ModelInferRequest(id=request_id)
        if job.sequence:
            more.parameters["sequence_id"].int64_param = job.sequence
            more.parameters["sequence_start"].bool_param = job.start
            more.parameters["sequence_end"].bool_param = job.end
        return fixed + more.SerializeToString()

    def _make(self, step: int, place: int) -> ModelInferRequest:
        request = ModelInferRequest(model_name=self._facts.name, model_version=self._facts.version)
        for name, value in self._parameters.items():
            _set(request.parameters[name], value)
        for number, tensor in enumerate(self._corpus.steps[step]):
            told = request.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
            if self._regions is None:
                request.raw_input_contents.append(tensor.content)
                continue
            for name, value in region_parameters(self._regions.inputs[step][number]).items():
                _set(told.parameters[name], value)
        if self._regions is not None:
            for number, output in enumerate(self._facts.outputs):
                wanted = request.outputs.add(name=output.name)
                for name, value in region_parameters(self._regions.output(place, number)).items():
                    _set(wanted.parameters[name], value)
        return request


def _set(parameter: Any, value: str | float | bool) -> None:
    kind = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}[type(value)]
    setattr(parameter, kind, value)
