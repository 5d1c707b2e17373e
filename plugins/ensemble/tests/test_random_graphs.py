"""Whatever the graph and whoever answers first: every step runs once, and the result is that of a plain evaluation."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tritonpy import OutputSpec

from .stage import DECOUPLED, ensemble, member, play, step


@st.composite
def graphs(draw):
    """Return steps as pairs of the tensors that they read and those that they make; a tensor is a number, 0 and 1 are the inputs."""
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
    """Return what a step makes of what it reads."""
    return (1000003 * (place + 1) + sum((index + 1) * value for index, value in enumerate(values))) % 99991


def show_of(steps, outputs):
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
    return play(ensemble(text, inputs=inputs, outputs=" ".join(f"t{tensor}" for tensor in outputs)), *members)


def evaluated(steps, outputs):
    """Return the outputs and the steps that they need, the plain way."""
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


def act(show, call):
    place = int(call.model_name[1:])
    value = computed(place, [int(tensor.numpy()[0]) for _, tensor in sorted(call.inputs.items())])
    show.stage.answer(call, **{name: [value + int(name[1:])] for name in call.outputs})


@given(graphs(), st.data())
def test_every_step_runs_once_and_the_result_is_that_of_a_plain_evaluation(steps, data):
    made = [tensor for _, made in steps for tensor in made]
    outputs = sorted({*ends(steps), *data.draw(st.lists(st.sampled_from(made)))})
    wanted = sorted(data.draw(st.lists(st.sampled_from(outputs), min_size=1, unique=True)))
    show = show_of(steps, outputs)
    expected, needed = evaluated(steps, wanted)
    request = show.ask(t0=[5], t1=[7], outputs={f"t{tensor}": OutputSpec(f"t{tensor}") for tensor in wanted})
    while show.stage.open:
        act(show, data.draw(st.sampled_from(show.stage.open)))
    assert show.answers(request) == [expected]
    assert Counter(call.model_name for call in show.stage.calls) == {f"m{place}": 1 for place in needed}
    assert show.flags(request) == [(True, False)]
    assert show.over()


@given(st.lists(st.booleans(), min_size=1, max_size=4), st.integers(0, 2), st.data())
def test_a_chain_of_decoupled_members_answers_in_order_whoever_comes_first(decoupled, most, data):
    """Each call of a decoupled member answers as often as its input says; an answer carries the way that led to it."""
    text = "".join(step(f"m{place}", f"I0=t{place}", f"O0=t{place + 1}") for place in range(len(decoupled)))
    members = [member(f"m{place}", "I0", "O0", decoupled=each) for place, each in enumerate(decoupled)]
    config = ensemble(text, "t0", f"t{len(decoupled)}", DECOUPLED if any(decoupled) else "", most)
    show = play(config, *members)
    fan = {place: data.draw(st.integers(0, 3)) for place, each in enumerate(decoupled) if each}
    request = show.ask(t0=[1])
    sent = Counter()
    while show.stage.open:
        call = data.draw(st.sampled_from(show.stage.open))
        place, way = int(call.model_name[1:]), call.inputs["I0"].numpy().tolist()
        number = sent[id(call)]
        sent[id(call)] += 1
        if place not in fan:
            show.stage.answer(call, O0=way)
        elif number < fan[place]:
            last = number == fan[place] - 1 and data.draw(st.booleans())
            show.stage.answer(call, O0=[*way, number], final=last)
        else:
            show.stage.end(call)
    ways = [[1]]
    for count in fan.values():
        ways = [[*way, number] for way in ways for number in range(count)]
    assert [answer[f"t{len(decoupled)}"] for answer in show.answers(request)] == ways
    assert [final for final, _ in show.flags(request)].count(True) == 1
    assert show.flags(request)[-1][0]
    assert show.over()
