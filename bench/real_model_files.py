"""ONNX models of real sizes with random weights: what they compute costs as much as the real ones.

ResNet-50, encoders as large as BERT and MiniLM, gradient-boosted trees, and a small perceptron.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
TOKENS, WORDS, FEATURES = 64, 1000, 30
TREES, DEPTH = 200, 6


@dataclass
class _Graph:
    """Nodes and weights of a graph; each method returns the name of its output."""

    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: Array) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int, fan: int = 1) -> str:
        return self.constant(self.random.normal(0, 1 / sqrt(fan), shape).astype(np.float32))

    def linear(self, data: str, rows: int, columns: int) -> str:
        product = self.add("MatMul", data, self.weight(rows, columns, fan=rows))
        return self.add("Add", product, self.weight(columns))

    def save(self, file: Path, name: str, kind: int, dims: Sequence[int], last: str) -> None:
        """Write the model: input `name` of `dims` per row, output `output`."""
        self.nodes.append(helper.make_node("Identity", [last], ["output"]))
        given = helper.make_tensor_value_info(name, kind, ["batch", *dims])
        made = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", "n"])
        graph = helper.make_graph(self.nodes, file.stem, [given], [made], self.weights)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
        file.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), file)


def write_resnet50(file: Path) -> None:
    """Write ResNet-50, its normalization folded into the convolutions: 25.5 M parameters."""
    graph = _Graph()

    def convolve(data: str, before: int, after: int, size: int, stride: int = 1) -> str:
        weight = graph.weight(after, before, size, size, fan=before * size * size)
        pads, strides = [size // 2] * 4, [stride, stride]
        return graph.add("Conv", data, weight, graph.weight(after), pads=pads, strides=strides)

    data = graph.add("Relu", convolve("image", 3, 64, 7, 2))
    data = graph.add("MaxPool", data, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = graph.add("Relu", convolve(data, channels, width, 1))
            inner = graph.add("Relu", convolve(inner, width, width, 3, stride))
            inner = convolve(inner, width, 4 * width, 1)
            if not block:
                data = convolve(data, channels, 4 * width, 1, stride)
            data = graph.add("Relu", graph.add("Add", inner, data))
            channels = 4 * width
    data = graph.add("Flatten", graph.add("GlobalAveragePool", data))
    graph.save(file, "image", TensorProto.FLOAT, [3, 224, 224], graph.linear(data, channels, 1000))


def write_encoder(file: Path, layers: int, width: int) -> None:
    """Write a transformer encoder for `TOKENS` tokens: 12 heads, inner size 4 x `width`."""
    graph = _Graph()
    heads = 12
    size = width // heads

    def normalize(data: str) -> str:
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return graph.add("LayerNormalization", data, graph.constant(ones), graph.constant(zeros))

    def split(data: str, order: list[int]) -> str:
        shape = graph.constant(np.array([0, TOKENS, heads, size]))
        return graph.add("Transpose", graph.add("Reshape", data, shape), perm=order)

    data = normalize(graph.add("Gather", graph.weight(WORDS, width), "ids"))
    whole = graph.constant(np.array([0, TOKENS, width]))
    for _ in range(layers):
        query = split(graph.linear(data, width, width), [0, 2, 1, 3])
        key = split(graph.linear(data, width, width), [0, 2, 3, 1])
        value = split(graph.linear(data, width, width), [0, 2, 1, 3])
        scale = graph.constant(np.array(1 / sqrt(size), np.float32))
        scores = graph.add("Mul", graph.add("MatMul", query, key), scale)
        mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
        mixed = graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), whole)
        data = normalize(graph.add("Add", data, graph.linear(mixed, width, width)))
        inner = graph.add("Relu", graph.linear(data, width, 4 * width))
        data = normalize(graph.add("Add", data, graph.linear(inner, 4 * width, width)))
    pooled = graph.add("ReduceMean", data, axes=[1], keepdims=0)
    graph.save(file, "ids", TensorProto.INT64, [TOKENS], pooled)


def write_trees(file: Path) -> None:
    """Write gradient-boosted trees: `TREES` of depth `DEPTH` over `FEATURES` features."""
    graph = _Graph()
    inner, leaves = 2**DEPTH - 1, 2**DEPTH
    count = inner + leaves
    places = np.tile(np.arange(count), TREES)
    is_leaf = places >= inner
    features = np.where(is_leaf, 0, graph.random.integers(0, FEATURES, len(places)))
    values = np.where(is_leaf, 0.0, graph.random.normal(0, 1, len(places)))
    trees = np.repeat(np.arange(TREES), count)
    total = graph.add(
        "TreeEnsembleRegressor", "features", domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=trees, nodes_nodeids=places, nodes_featureids=features, nodes_values=values,
        nodes_modes=[b"LEAF" if each else b"BRANCH_LEQ" for each in is_leaf],
        nodes_truenodeids=np.where(is_leaf, 0, 2 * places + 1),
        nodes_falsenodeids=np.where(is_leaf, 0, 2 * places + 2),
        target_ids=[0] * (TREES * leaves), target_treeids=trees[is_leaf],
        target_nodeids=places[is_leaf],
        target_weights=graph.random.normal(0, 0.1, TREES * leaves),
    )  # fmt: skip
    graph.save(file, "features", TensorProto.FLOAT, [FEATURES], total)


def write_perceptron(file: Path) -> None:
    """Write a perceptron of three layers: 1 MB of weights."""
    graph = _Graph()
    data = graph.add("Relu", graph.linear("features", FEATURES, 400))
    data = graph.add("Relu", graph.linear(data, 400, 560))
    graph.save(file, "features", TensorProto.FLOAT, [FEATURES], graph.linear(data, 560, 32))


@dataclass(frozen=True)
class RealModel:
    """A model: a title, the function that writes it, and its input for one row."""

    title: str
    write: Callable[[Path], None]
    name: str
    row: Callable[[], Array]
    width: int  # of the output


def _features() -> Array:
    return np.linspace(-1, 1, FEATURES, dtype=np.float32).reshape(1, -1)


def _ids() -> Array:
    return (np.arange(TOKENS, dtype=np.int64) * 7 % WORDS).reshape(1, -1)


def _image() -> Array:
    return np.linspace(-1, 1, 3 * 224 * 224, dtype=np.float32).reshape(1, 3, 224, 224)


MODELS = {
    "resnet50": RealModel("ResNet-50", write_resnet50, "image", _image, 1000),
    "bert": RealModel(
        "encoder of BERT's size", lambda file: write_encoder(file, 12, 768), "ids", _ids, 768
    ),
    "minilm": RealModel(
        "encoder of MiniLM's size", lambda file: write_encoder(file, 6, 384), "ids", _ids, 384
    ),
    "trees": RealModel("gradient-boosted trees", write_trees, "features", _features, 1),
    "perceptron": RealModel("1 MB perceptron", write_perceptron, "features", _features, 32),
}
