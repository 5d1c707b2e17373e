"""Small TensorFlow models, built on demand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy_backend_tf.backend import TensorFlowBackend
from tritonpy_backend_tf.runtime import import_tensorflow
from tritonpy_testing import BackendHarness, model_config

Specs = Mapping[str, tuple[str, Sequence[int | None] | None]]  # name -> TensorFlow's type, shape
HIDDEN = 256


class Models:
    """Writes models into version 1 of a model folder, with the default file names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = folder / "1"

    @property
    def tf(self) -> Any:
        return import_tensorflow()

    def saved_model(
        self,
        function: Callable[..., Mapping[str, Any]],
        inputs: Specs,
        variables: Any = None,
        **more: Any,
    ) -> Path:
        """`more` contains additional signatures as pairs of function and inputs."""
        module = self.tf.Module()
        module.variables_of_function = variables
        path = self.version / "model.savedmodel"
        signatures = {
            name: self.concrete(*pair)
            for name, pair in {"serving_default": (function, inputs), **more}.items()
        }
        self.tf.saved_model.save(module, str(path), signatures=signatures)
        return path

    def concrete(self, function: Callable[..., Any], inputs: Specs) -> Any:
        specs = {
            name: self.tf.TensorSpec(shape, kind, name=name)
            for name, (kind, shape) in inputs.items()
        }
        return self.tf.function(function).get_concrete_function(**specs)

    def graph_def(self, build: Callable[[Any], None]) -> Path:
        """`build` receives `tf.compat.v1` and adds operations to the current graph."""
        with self.tf.Graph().as_default() as graph:
            build(self.tf.compat.v1)
        path = self.version / "model.graphdef"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(graph.as_graph_def().SerializeToString())
        return path

    def identity(self, kind: str, shape: Sequence[int | None] | None) -> Path:
        return self.saved_model(lambda IN: {"OUT": self.tf.identity(IN)}, {"IN": (kind, shape)})  # noqa: N803

    def add_sub(self, kind: str = "int32") -> Path:
        def add_sub(INPUT0: Any, INPUT1: Any) -> Mapping[str, Any]:  # noqa: N803
            return {"OUTPUT0": INPUT0 + INPUT1, "OUTPUT1": INPUT0 - INPUT1}

        return self.saved_model(add_sub, dict.fromkeys(("INPUT0", "INPUT1"), (kind, (None, 16))))

    def add_sub_graph(self) -> Path:
        def build(tf1: Any) -> None:
            one, other = (
                tf1.placeholder("int32", (None, 16), name) for name in ("INPUT0", "INPUT1")
            )
            tf1.add(one, other, "OUTPUT0")
            tf1.subtract(one, other, "OUTPUT1")

        return self.graph_def(build)

    def network(self, hidden: int = HIDDEN, layers: int = 4) -> Path:
        """Some layers with weights in variables, sufficient for XLA and graph rewriters."""
        tf = self.tf
        random = np.random.default_rng(3)
        first = tf.Variable(random.standard_normal((64, hidden), np.float32) / 8, name="first")
        inner = tf.Variable(
            random.standard_normal((hidden, hidden), np.float32) / hidden**0.5, name="inner"
        )

        def run(image: Any) -> Mapping[str, Any]:
            found = tf.nn.relu(image @ first)
            for _ in range(layers):
                found = tf.nn.relu(found @ inner) * 1.01
            return {"scores": found}

        return self.saved_model(run, {"image": ("float32", (None, 64))}, [first, inner])

    def keras(self, *layers: Any, name: str = "model.keras") -> Path:
        import keras

        path = self.version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        keras.utils.set_random_seed(7)
        dense = (keras.layers.Dense(10, activation="softmax"),)
        keras.Sequential([keras.Input((64,), name="image"), *(layers or dense)]).save(path)
        return path


@pytest.fixture(autouse=True)
def _warnings_of_frameworks() -> None:
    """Ignore deprecation warnings of Keras and TensorFlow."""
    warnings.filterwarnings("ignore", module="keras|tensorflow|numpy")


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path)


@pytest.fixture
def load(models: Models) -> Callable[..., BackendHarness]:
    """Return the harness of the model in the test's folder.

    `text` is additional configuration; keywords in capitals are parameters.
    """

    def make(
        text: str = "", options: Mapping[str, Any] | None = None, **parameters: str
    ) -> BackendHarness:
        for key, value in parameters.items():
            text += f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        if (
            not (models.version / "model.savedmodel").exists()
            and "default_model_filename" not in text
        ):
            [found] = [
                each.name for each in models.version.iterdir() if each.name.startswith("model.")
            ]
            platform = "graphdef" if found.endswith(".graphdef") else "savedmodel"
            text += f' platform: "tensorflow_{platform}" default_model_filename: "{found}"'
        return BackendHarness(
            TensorFlowBackend,
            model_config('name: "m" backend: "tensorflow" ' + text),
            models.folder,
            options,
        )

    return make
