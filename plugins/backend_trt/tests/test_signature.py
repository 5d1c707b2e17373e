from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_trt.signature import Packing, Range, TensorInfo, read_signature

from .simulated import plans
from .simulated.plans import plan, tensor


def signature(simulation, data):
    class Logger(simulation.trt.ILogger):
        def log(self, *_thread_errors):
            pass

    runtime = simulation.trt.Runtime(Logger())
    return read_signature(runtime.deserialize_cuda_engine(data))


def test_an_engine_names_its_tensors_in_its_order(simulation):
    found = signature(simulation, plans.add_sub("HALF"))
    assert list(found.tensors) == ["A", "B", "SUM", "DIFFERENCE"]
    assert list(found.inputs) == ["A", "B"]
    assert list(found.outputs) == ["SUM", "DIFFERENCE"]
    assert found.tensors["A"] == TensorInfo("A", "FP16", (-1, 4), is_input=True)


def test_every_profile_says_what_it_allows(simulation):
    [profile] = signature(simulation, plans.expand(batched=True)).profiles
    assert profile.index == 0
    assert profile.shapes == {"IN": Range((1, 2), (2, 2), (8, 2)), "SIZE": Range((3,), (3,), (3,))}
    assert profile.values == {"SIZE": Range((1, 1, 1), (2, 2, 2), (8, 4, 5))}


def test_packed_and_shape_tensors_are_distinguished(simulation):
    assert signature(simulation, plans.packed()).tensors["IN"].packing == Packing(1, 4)
    assert signature(simulation, plans.double()).tensors["IN"].packing is None
    found = signature(simulation, plans.expand(batched=False)).tensors
    assert [name for name, info in found.items() if info.is_shape] == ["SIZE", "SIZES"]


def test_a_type_that_the_protocol_lacks_has_no_name(simulation):
    found = signature(
        simulation, plan("copy", [tensor("IN", [1], "FP8"), tensor("OUT", [1], "FP8", output=True)])
    )
    assert found.tensors["IN"].datatype == "INVALID"


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.data(), st.integers(1, 32))
def test_packing_rounds_one_dimension_up_to_whole_vectors(shape, data, components):
    at = data.draw(st.integers(0, len(shape) - 1))
    found = Packing(at, components).pad(tuple(shape))
    assert found[at] % components == 0
    assert 0 <= found[at] - shape[at] < components
    assert (*found[:at], *found[at + 1 :]) == (*shape[:at], *shape[at + 1 :])


def test_plans_of_the_simulation_are_readable():
    assert json.loads(plans.double()[28:])["function"] == "double"
