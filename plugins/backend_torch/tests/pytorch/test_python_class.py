from __future__ import annotations

import numpy as np
import pytest
import torch

from tritonpy import TritonError
from tritonpy_backend_torch.pytorch import python_class, torch_compile

from ..models import EAGER, LINEAR, LINEAR_FILE

X = np.array([[1, 2, 3]], np.float32)
TWO_IO = """
    input [{ name: "a" data_type: TYPE_FP32 dims: 2 }, { name: "b" data_type: TYPE_FP32 dims: 2 %s }]
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""
HEAD = (
    "from __future__ import annotations\nimport torch\nfrom torch.nn import Linear as Imported\n\n"
)


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


@pytest.fixture
def ask(models, load):
    """`ask(text, io, inputs)`: the first output of the class in `text`, run without a compiler."""

    def run(text, io, inputs, more=EAGER):
        models.python(text, None)
        with load('name: "m" backend: "pytorch" runtime: "model.py" ' + io + more) as harness:
            [[answer]] = harness.execute(
                harness.request(
                    {name: np.array(value, np.float32) for name, value in inputs.items()}
                )
            )
        assert answer.error is None, answer.error
        return answer.outputs[0].numpy().tolist()

    return run


def refusal(models, load, text, more=""):
    models.python(text, None)
    with pytest.raises(TritonError) as refused, load(LINEAR + EAGER + more):
        pass
    return refused.value.message


@pytest.mark.parametrize("weights", ["model.safetensors", "model.pt"])
def test_a_class_is_served_with_the_weights_next_to_it(models, load, weights):
    models.python(weights=weights)
    with load(LINEAR + EAGER) as harness:
        [[answer]] = harness.execute(harness.request({"x": X}))
    assert answer.outputs[0].numpy().tolist() == [[6, 12]]


def test_a_class_without_weights_is_served_as_constructed(ask):
    text = (
        HEAD + "class Net(torch.nn.Module):\n    def forward(self, a, b):\n        return a - b\n"
    )
    assert ask(text, TWO_IO % "", {"a": [1, 2], "b": [1, 1]}) == [0, 1]


def test_arguments_are_found_by_name(ask):
    text = (
        HEAD + "class Net(torch.nn.Module):\n    def forward(self, b, a):\n        return a - b\n"
    )
    assert ask(text, TWO_IO % "", {"a": [1, 2], "b": [1, 1]}) == [0, 1]


def test_keywords_and_defaults(ask):
    text = (
        HEAD
        + "class Net(torch.nn.Module):\n    def forward(self, a, *, b=None):\n        return a if b is None else a - b\n"
    )
    assert ask(text, TWO_IO % "optional: true", {"a": [1, 2], "b": [1, 1]}) == [0, 1]
    assert ask(text, TWO_IO % "optional: true", {"a": [1, 2]}) == [1, 2]


def test_any_number_of_arguments_in_the_order_of_the_configuration(ask):
    text = (
        HEAD
        + "class Net(torch.nn.Module):\n    def forward(self, *tensors):\n        return tensors[0] - tensors[1]\n"
    )
    assert ask(text, TWO_IO % "", {"a": [1, 2], "b": [1, 1]}) == [0, 1]


@pytest.mark.parametrize(
    "annotation", ["dict[str, torch.Tensor]", "Dict[str, torch.Tensor]", "dict"]
)
def test_one_dictionary_takes_all_inputs_and_gives_outputs_by_name(ask, annotation):
    text = (
        HEAD
        + f"class Net(torch.nn.Module):\n    def forward(self, inputs: {annotation}):\n        return {{'x': 1 * inputs['a'], 'OUT': inputs['a'] - inputs['b']}}\n"
    )
    assert ask(text, TWO_IO % "", {"a": [1, 2], "b": [1, 1]}) == [0, 1]


def test_the_first_class_of_the_file_is_served_and_a_parameter_chooses(models, load, ask, caplog):
    text = HEAD + "".join(
        f"class {name}(torch.nn.Module):\n    def forward(self, a, b):\n        return a {sign} b\n\n"
        for name, sign in (("Z", "+"), ("B", "-"))
    )
    assert ask(text, TWO_IO % "", {"a": [1, 2], "b": [1, 1]}) == [0, 1]
    assert (
        "has several subclasses of torch.nn.Module, using 'B': set MODEL_CLASS to choose one"
        in caplog.text
    )
    assert ask(
        text, TWO_IO % "", {"a": [1, 2], "b": [1, 1]}, EAGER + parameter("MODEL_CLASS", "Z")
    ) == [2, 3]
    assert "has no subclass 'C' of torch.nn.Module, which MODEL_CLASS names" in refusal(
        models, load, text, parameter("MODEL_CLASS", "C")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import torch\n", "Cannot find a subclass of torch.nn.Module"),
        ("import a_module_that_is_not_there\n", "cannot be imported: ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        ("class Net(\n", "cannot be imported: SyntaxError"),
        ("import torch\nclass Net(torch.nn.Module):\n    def __init__(self, size):\n        super().__init__()\n", "class Net of "),
    ],
)  # fmt: skip
def test_an_invalid_file_gives_the_reason(models, load, text, message):
    assert message in refusal(models, load, text)


def test_weights_that_do_not_fit_name_what_is_missing(models, load):
    models.python(LINEAR_FILE.replace("self.layer", "self.other"))
    with (
        pytest.raises(
            TritonError,
            match=r"(?s)the weights in .* do not fit the class in .*Missing key.*other.weight",
        ),
        load(LINEAR + EAGER),
    ):
        pass


def test_two_models_may_have_files_of_one_name(tmp_path, models, load):
    models.python(
        HEAD
        + "class Net(torch.nn.Module):\n    def forward(self, x):\n        return 2 * x[:, :2]\n",
        None,
    )
    with load(LINEAR + EAGER) as first:
        models.python(
            HEAD
            + "class Net(torch.nn.Module):\n    def forward(self, x):\n        return 3 * x[:, :2]\n",
            None,
        )
        with load(LINEAR + EAGER) as second:
            answers = [
                each.execute(each.request({"x": X}))[0][0].outputs[0].numpy().tolist()
                for each in (first, second)
            ]
    assert answers == [[[2, 4]], [[3, 6]]]


def test_a_class_is_compiled_if_a_compiler_exists_unless_disabled(
    models, load, monkeypatch, caplog
):
    compilations = []
    monkeypatch.setattr(
        torch, "compile", lambda module, **arguments: compilations.append(arguments) or module
    )
    monkeypatch.setattr(torch_compile, "has_compiler", lambda: True)
    monkeypatch.setattr(python_class, "has_compiler", lambda: True)
    models.python()
    for more in (parameter("isolation", "thread"), EAGER):
        with load(LINEAR + more):
            pass
    assert compilations == [{}, {"backend": "eager"}]
    monkeypatch.setattr(python_class, "has_compiler", lambda: False)
    with load(LINEAR + parameter("isolation", "thread")):
        pass
    assert len(compilations) == 2
    assert "'m' runs without torch.compile: no C++ compiler is installed" in caplog.text


def test_a_class_uses_one_thread_by_default(models, load):
    models.python(
        HEAD
        + "class Net(torch.nn.Module):\n    def forward(self, x):\n        return x[:, :2] * 0 + torch.get_num_threads()\n",
        None,
    )
    eager = parameter("isolation", "thread") + parameter(
        "TORCH_COMPILE_OPTIONAL_PARAMETERS", '{\\"disable\\": true}'
    )
    found = []
    for more in ("", parameter("NUM_THREADS", 2)):
        with load(LINEAR + eager + more) as harness:
            [[answer]] = harness.execute(harness.request({"x": X}))
            found.append(answer.outputs[0].numpy()[0, 0])
    assert found == [1, 2]
