"""Creates and changes metrics by PLAN, and returns the result or error of each step."""

from __future__ import annotations

import gc
import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.families = {}
        self.metrics = {}

    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        self.metrics.clear()  # metrics first: a family must outlive its metrics
        self.families.clear()
        plan = json.loads(pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy()[0])
        result = json.dumps([self._step(*step) for step in plan]).encode()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("RESULT", np.array([result], np.object_))]
        )

    def _step(self, name, *arguments):
        try:
            return getattr(self, f"_do_{name}")(*arguments)
        except Exception as error:
            return {"raised": type(error).__name__, "text": str(error)}

    def _do_family(self, key, name, kind, description="what it counts"):
        kind = getattr(pb_utils.MetricFamily, kind) if isinstance(kind, str) else kind
        self.families[key] = pb_utils.MetricFamily(name=name, description=description, kind=kind)

    def _do_metric(self, key, family, labels=None, buckets=None):
        given = {} if labels is None else {"labels": labels}
        if buckets is not None:
            given["buckets"] = buckets
        self.metrics[key] = self.families[family].Metric(**given)

    def _do_increment(self, key, value):
        return self.metrics[key].increment(value)

    def _do_set(self, key, value):
        return self.metrics[key].set(value)

    def _do_observe(self, key, value):
        return self.metrics[key].observe(value)

    def _do_value(self, key):
        return [type(self.metrics[key].value()).__name__, self.metrics[key].value()]

    def _do_drop(self, key):
        del self.metrics[key]
        gc.collect()

    def _do_drop_family(self, key):
        del self.families[key]
        gc.collect()
