from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy import Internal
from tritonpy_backend_tf.keras_file import KerasFile


def opened(path, safe_mode=True):
    return KerasFile(path, "m", "", "", safe_mode)


@pytest.fixture
def with_code(models):
    import keras

    return models.keras(keras.layers.Lambda(lambda x: x * 2, output_shape=(64,)))


def test_the_signature_is_that_of_the_export_which_close_removes(models):
    file = opened(models.keras())
    assert {name: info.dims for name, info in file.signature.inputs.items()} == {"image": (-1, 64)}
    assert {name: info.dims for name, info in file.signature.outputs.items()} == {
        "output_0": (-1, 10)
    }
    folder = Path(file._folder.name)
    assert folder.is_dir()
    file.close()
    assert not folder.exists()


def test_closing_an_unread_file_leaves_nothing(models):
    opened(models.keras()).close()


def test_a_file_with_code_is_rejected_with_the_parameter_that_allows_it(with_code):
    file = opened(with_code)
    with pytest.raises(Internal) as caught:
        _ = file.signature
    assert file._folder is None
    assert caught.value.message == (
        "unable to load model 'm': model.keras contains code (a Lambda layer) that would run in the server. If you trust the"
        " file, set the model's parameter KERAS_SAFE_MODE to false"
    )


def test_a_file_with_code_is_loaded_if_allowed(with_code):
    file = opened(with_code, safe_mode=False)
    assert list(file.signature.inputs) == ["image"]
    file.close()


def test_several_inputs_and_outputs_have_the_names_of_the_model(models):
    import keras

    one, other = keras.Input((3,), name="one"), keras.Input((3,), name="other")
    model = keras.Model(
        {"one": one, "other": other}, {"sum": one + other, "difference": one - other}
    )
    path = models.version / "model.keras"
    path.parent.mkdir(parents=True)
    model.save(path)
    file = opened(path)
    assert (sorted(file.signature.inputs), sorted(file.signature.outputs)) == (
        ["one", "other"],
        ["difference", "sum"],
    )
    file.close()


@pytest.mark.parametrize("damage", [lambda content: content[:100], lambda _: b"this is no archive"])
def test_a_damaged_file_is_named(models, damage):
    path = models.keras()
    path.write_bytes(damage(path.read_bytes()))
    file = opened(path)
    with pytest.raises(
        Internal,
        match=r"unable to load model 'm': model\.keras is damaged, truncated or not a Keras 3 file$",
    ):
        _ = file.signature
    file.close()


def test_a_layer_that_keras_does_not_know_is_named(models):
    import keras

    class Doubling(keras.layers.Layer):
        def call(self, x):
            return x * 2

    path = models.keras(Doubling())
    file = opened(path)
    with pytest.raises(Internal, match="Doubling"):
        _ = file.signature
    file.close()
