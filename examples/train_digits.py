"""Train the model `digits` on handwritten digits; write it and one held-out digit.

    pip install scikit-learn onnx
    python examples/train_digits.py

The script writes `models/digits/1/model.onnx` (8x8 gray values 0..16, row by row -> probabilities
of ten classes), `models/digits/labels.txt`, and `digit.json`, a request for `POST
/v2/models/digits/infer`:

    curl -s http://127.0.0.1:8000/v2/models/digits/infer -d @examples/digit.json
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).parent
SEED = 7
BRIGHTEST = 16.0  # the gray values of the images are 0..16
EXAMPLE_INDEX = 8  # index of the held-out digit in digit.json: a two
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def export(network: MLPClassifier) -> onnx.ModelProto:
    """Return the network as an ONNX model of raw gray values."""
    weights = {
        f"{kind}{layer}": array.astype(np.float32)
        for kind, arrays in (("weight", network.coefs_), ("bias", network.intercepts_))
        for layer, array in enumerate(arrays)
    }
    weights["weight0"] = (network.coefs_[0] / BRIGHTEST).astype(np.float32)
    nodes = [
        helper.make_node("Gemm", ["image", "weight0", "bias0"], ["linear"]),
        helper.make_node("Relu", ["linear"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "weight1", "bias1"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def request(image: np.ndarray, true_class: int) -> str:
    """Return an inference request in JSON for the two best classes; its id names the true class."""
    body = {
        "id": f"a handwritten {NAMES[true_class]}",
        "inputs": [
            {
                "name": "image",
                "datatype": "FP32",
                "shape": [1, 64],
                "data": [int(value) for value in image],
            }
        ],
        "outputs": [{"name": "scores", "parameters": {"classification": 2}}],
    }
    return json.dumps(body) + "\n"


def main() -> None:
    """Train the network, print its accuracy, and write the files."""
    images, classes = load_digits(return_X_y=True)
    training, held_out, training_classes, true_classes = train_test_split(
        images, classes, test_size=0.2, random_state=SEED, stratify=classes
    )
    network = MLPClassifier((64,), max_iter=500, random_state=SEED)
    network.fit(training / BRIGHTEST, training_classes)
    print(
        f"accuracy {network.score(held_out / BRIGHTEST, true_classes):.1%} on {len(held_out)} "
        "held-out digits"
    )
    target = HERE / "models" / "digits" / "1" / "model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(export(network), target)
    (target.parents[1] / "labels.txt").write_text("\n".join(NAMES) + "\n", encoding="utf-8")
    (HERE / "digit.json").write_text(
        request(held_out[EXAMPLE_INDEX], true_classes[EXAMPLE_INDEX]), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
