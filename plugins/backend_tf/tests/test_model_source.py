from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_tf.frozen_graph import FrozenGraph
from tritonpy_backend_tf.keras_file import KerasFile
from tritonpy_backend_tf.model_source import create_source, is_saved_model
from tritonpy_backend_tf.saved_model import SavedModel
from tritonpy_backend_tf.settings import model_settings
from tritonpy_testing import model_config

GRAPH = 'platform: "tensorflow_graphdef" '


def named(filename):
    return f'default_model_filename: "{filename}" '


@pytest.fixture
def source(models, load):
    """Return the source for a configuration.

    `files` are created first; names with a trailing slash are folders.
    """
    models.version.mkdir(parents=True)

    def make(text, *files, options=None, **parameters):
        for name in files:
            path = models.version / name
            path.mkdir() if name.endswith("/") else path.write_bytes(b"")
        harness = load(
            text + named("x") if "default_model" not in text else text, options, **parameters
        )
        harness.model.config.default_model_filename = (
            harness.model.config.default_model_filename.removesuffix("x")
        )
        return create_source(
            harness.model, model_settings(harness.model.config, harness.model.parameters)
        )

    return make


@pytest.mark.parametrize(
    ("text", "file", "kind"),
    [
        ("", "model.savedmodel/", SavedModel),
        (GRAPH, "model.graphdef", FrozenGraph),
        (named("net.keras"), "net.keras", KerasFile),
        (GRAPH + named("net.pb"), "net.pb", FrozenGraph),
        (named("net"), "net/", SavedModel),
    ],
)
def test_platform_and_file_name_determine_the_kind(source, text, file, kind):
    assert type(source(text, file)) is kind


def test_a_missing_file_is_named(source):
    with pytest.raises(Unavailable, match=r"unable to find '.*/1/net' for model instance 'm'"):
        source(named("net"))


def test_a_file_of_another_kind_is_rejected_with_instructions(source):
    with pytest.raises(
        InvalidArgument,
        match=r'net.h5 is a file, but a SavedModel is a folder.*platform: "tensorflow_graphdef"',
    ):
        source(named("net.h5"), "net.h5")


def test_a_folder_is_not_a_frozen_graph(source):
    with pytest.raises(
        InvalidArgument,
        match=r'net is a folder, but a GraphDef is a file.*platform: "tensorflow_savedmodel"',
    ):
        source(GRAPH + named("net"), "net/")


@pytest.mark.parametrize(
    ("options", "parameters", "safe"),
    [
        (None, {}, True),
        ({"keras-safe-mode": False}, {}, False),
        ({"keras-safe-mode": False}, {"KERAS_SAFE_MODE": "true"}, True),
        (None, {"KERAS_SAFE_MODE": "off"}, False),
    ],
)
def test_code_in_keras_files_is_allowed_by_the_model_or_for_all(source, options, parameters, safe):
    assert source(named("a.keras"), "a.keras", options=options, **parameters)._safe_mode is safe


@pytest.mark.parametrize(
    ("text", "has_signature"),
    [("", True), (GRAPH, False), (named("a.keras"), False), (named("a"), True)],
)
def test_only_saved_models_have_a_signature_without_tensorflow(text, has_signature):
    assert is_saved_model(model_config(f'name: "m" {text}')) is has_signature
