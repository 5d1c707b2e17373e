"""The digits model for TensorFlow and Keras: SavedModel, frozen GraphDef, `.keras` file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from examples.formats.digits import BRIGHTEST, CLASSES, PIXELS, Weights

IMAGE = tf.TensorSpec([None, PIXELS], tf.float32, "image")


def write_savedmodel(folder: Path, weights: Weights) -> None:
    """Write the folder `model.savedmodel`, with the signature `serving_default`."""
    network = network_of(weights)
    archive = tf.keras.export.ExportArchive()
    archive.track(network)
    archive.add_endpoint("serve", lambda image: {"scores": network(image)}, [IMAGE])
    archive.write_out(str(folder / "model.savedmodel"), verbose=False)


def write_graphdef(folder: Path, weights: Weights) -> None:
    """Write `model.graphdef` with constant weights, input `image` and output `scores`."""
    network = network_of(weights)

    @tf.function(input_signature=[IMAGE])
    def infer(image: Any) -> Any:
        return tf.identity(network(image), name="scores")

    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    graph = convert_variables_to_constants_v2(infer.get_concrete_function()).graph.as_graph_def()
    kept = [
        node for node in graph.node if node.name != "Identity"
    ]  # the function's return value, a duplicate of `scores`
    del graph.node[:]
    graph.node.extend(kept)
    (folder / "model.graphdef").write_bytes(graph.SerializeToString())


def write_keras(folder: Path, weights: Weights) -> None:
    """Write `model.keras`."""
    network_of(weights).save(folder / "model.keras")


def network_of(weights: Weights) -> Any:
    """Return the network with these weights in Keras, with channels last."""
    layers = tf.keras.layers
    network = tf.keras.Sequential(
        [
            layers.Input((PIXELS,), name="image"),
            layers.Rescaling(1 / BRIGHTEST),
            layers.Reshape((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu", name="conv0"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu", name="conv1"),
            layers.MaxPooling2D(),
            layers.Permute((3, 1, 2)),
            layers.Flatten(),
            layers.Dense(CLASSES, activation="softmax", name="scores"),
        ],
        name="digits",
    )
    for name, order in (("conv0", (2, 3, 1, 0)), ("conv1", (2, 3, 1, 0))):
        network.get_layer(name).set_weights(
            [np.transpose(weights[f"{name}.weight"], order), weights[f"{name}.bias"]]
        )
    network.get_layer("scores").set_weights([weights["dense.weight"].T, weights["dense.bias"]])
    return network
