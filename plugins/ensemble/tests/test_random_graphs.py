"""Random graphs and response orders: every step runs once, and results match a simple evaluation."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tritonpy import OutputSpec

from .scripted_engine import DECOUPLED, ensemble, make_harness, member, step


@st.composite
def graphs(draw):
    """Return steps as pairs (tensors read, tensors made).

    Tensors are numbers; 0 and 1 are inputs.
    """
    steps, tensors = [], [0, 1]
    for _ in range(draw(st.integers(1, 9))):
        read = draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=3, unique=True))
        made = list(range(len(tensors), len(tensors) + draw(st.integers(1, 2))))
        tensors += made
        steps.append((read, made))
    return steps


def ends(steps):
    """Return the tensors that no step reads."""
    read = {tensor for reads, _ in steps for tensor in reads}
    return [tensor for _, made in steps for tensor in made if tensor not in read]


def computed(place, values):
    """Return what a step computes from its inputs."""
    return (
        1000003 * (place + 1) + sum((index + 1) * value for index, value in enumerate(values))
    ) % 99991


def harness_of(steps, outputs):
    text = "".join(
        step(
            f"m{place}",
            " ".join(f"I{index}=t{tensor}" for index, tensor in enumerate(read)),
            " ".join(f"O{index}=t{tensor}" for index, tensor in enumerate(made)),
        )
        for place, (read, made) in enumerate(steps)
    )
    members = [
        member(
            f"m{place}",
            " ".join(f"I{index}" for index in range(len(read))),
            " ".join(f"O{index}" for index in range(len(made))),
        )
        for place, (read, made) in enumerate(steps)
    ]
    used = {tensor for read, _ in steps for tensor in read}
    inputs = " ".join(f"t{tensor}" for tensor in (0, 1) if tensor in used)
    return make_harness(
        ensemble(text, inputs=inputs, outputs=" ".join(f"t{tensor}" for tensor in outputs)),
        *members,
    )


def evaluated(steps, outputs):
    """Return the outputs and the steps that they need, by a simple evaluation."""
    values, needed, todo = {0: 5, 1: 7}, set(), list(outputs)
    for place, (read, made) in enumerate(steps):
        for index, tensor in enumerate(made):
            values[tensor] = computed(place, [values[each] for each in read]) + index
    maker = {tensor: place for place, (_, made) in enumerate(steps) for tensor in made}
    while todo:
        place = maker.get(todo.pop())
        if place is not None and place not in needed:
            needed.add(place)
            todo += steps[place][0]
    return {f"t{tensor}": [values[tensor]] for tensor in outputs}, needed


def respond_to(harness, call):
    place = int(call.model_name[1:])
    value = computed(place, [int(tensor.numpy()[0]) for _, tensor in sorted(call.inputs.items())])
    harness.engine.respond(call, **{name: [value + int(name[1:])] for name in call.outputs})


@given(graphs(), st.data())
def test_every_step_runs_once_and_results_match_a_simple_evaluation(steps, data):
    made = [tensor for _, made in steps for tensor in made]
    outputs = sorted({*ends(steps), *data.draw(st.lists(st.sampled_from(made)))})
    requested = sorted(data.draw(st.lists(st.sampled_from(outputs), min_size=1, unique=True)))
    harness = harness_of(steps, outputs)
    expected, needed = evaluated(steps, requested)
    request = harness.send(
        t0=[5], t1=[7], outputs={f"t{tensor}": OutputSpec(f"t{tensor}") for tensor in requested}
    )
    while harness.engine.in_flight:
        respond_to(harness, data.draw(st.sampled_from(harness.engine.in_flight)))
    assert harness.responses(request) == [expected]
    assert Counter(call.model_name for call in harness.engine.calls) == {
        f"m{place}": 1 for place in needed
    }
    assert harness.flags(request) == [(True, False)]
    assert harness.is_idle()


@given(st.lists(st.booleans(), min_size=1, max_size=4), st.integers(0, 2), st.data())
def test_a_chain_of_decoupled_members_responds_in_order(decoupled, most, data):
    """Each decoupled call sends a random number of responses.

    Each carries the path that led to it.
    """
    text = "".join(
        step(f"m{place}", f"I0=t{place}", f"O0=t{place + 1}") for place in range(len(decoupled))
    )
    members = [
        member(f"m{place}", "I0", "O0", decoupled=each) for place, each in enumerate(decoupled)
    ]
    config = ensemble(text, "t0", f"t{len(decoupled)}", DECOUPLED if any(decoupled) else "", most)
    harness = make_harness(config, *members)
    fan = {place: data.draw(st.integers(0, 3)) for place, each in enumerate(decoupled) if each}
    request = harness.send(t0=[1])
    sent = Counter()
    while harness.engine.in_flight:
        call = data.draw(st.sampled_from(harness.engine.in_flight))
        place, way = int(call.model_name[1:]), call.inputs["I0"].numpy().tolist()
        number = sent[id(call)]
        sent[id(call)] += 1
        if place not in fan:
            harness.engine.respond(call, O0=way)
        elif number < fan[place]:
            last = number == fan[place] - 1 and data.draw(st.booleans())
            harness.engine.respond(call, O0=[*way, number], final=last)
        else:
            harness.engine.end_stream(call)
    ways = [[1]]
    for count in fan.values():
        ways = [[*way, number] for way in ways for number in range(count)]
    assert [response[f"t{len(decoupled)}"] for response in harness.responses(request)] == ways
    assert [final for final, _ in harness.flags(request)].count(True) == 1
    assert harness.flags(request)[-1][0]
    assert harness.is_idle()
