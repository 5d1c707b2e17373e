from __future__ import annotations

import logging
import shutil

import pytest

from tritonpy_backend_tf.saved_model import SavedModel


def test_using_a_nondefault_signature_is_logged(models, caplog):
    module = models.tf.Module()
    signature = models.concrete(lambda x: {"y": x + 1}, {"x": ("float32", (None,))})
    folder = models.version / "model.savedmodel"
    models.tf.saved_model.save(module, str(folder), signatures={"mine": signature})
    with caplog.at_level(logging.WARNING):
        assert list(SavedModel(folder, "m", "", "").signature.inputs) == ["x"]
        assert caplog.messages == [
            "model 'm' has no signature 'serving_default': using signature 'mine'"
        ]
        caplog.clear()
        assert list(SavedModel(folder, "m", "", "mine").signature.inputs) == ["x"]
        assert caplog.messages == []


def test_missing_weights_are_named(models):
    folder = models.network()
    shutil.rmtree(folder / "variables")
    source = SavedModel(folder, "m", "", "")
    tf1 = models.tf.compat.v1
    refused = pytest.raises(
        ValueError, match=f"not a valid checkpoint: {folder}/variables/variables"
    )
    with models.tf.Graph().as_default() as graph, tf1.Session(graph=graph) as session, refused:
        source.restore(models.tf, session, "/cpu:0")
