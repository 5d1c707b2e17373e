from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import text_format

from tritonpy import Internal
from tritonpy_backend_tf.saved_model_file import read_served_signature
from tritonpy_backend_tf.signature import TensorInfo


def refused(*arguments):
    with pytest.raises(Internal) as caught:
        read_served_signature(*arguments)
    return caught.value.message


@pytest.fixture
def tagged(models):
    """Two graphs with different tags, as written by TensorFlow.

    Each has its own signatures.
    """
    tf1 = models.tf.compat.v1
    folder = models.version / "model.savedmodel"
    builder = tf1.saved_model.Builder(str(folder))
    for tags, name in ((["serve"], "x"), (["serve", "gpu"], "y")):
        with models.tf.Graph().as_default(), tf1.Session() as session:
            tensor = tf1.placeholder("float32", (None, 2), name)
            definition = tf1.saved_model.predict_signature_def({name: tensor}, {"out": tensor + 1})
            named = {f"sign_{name}": definition, f"also_{name}": definition}
            add = builder.add_meta_graph_and_variables if name == "x" else None
            if add:
                add(session, tags, signature_def_map=named)
            else:
                builder.add_meta_graph(tags, signature_def_map=named)
    builder.save()
    return folder


def test_a_signature_is_read_as_tensorflow_wrote_it(models):
    folder = models.saved_model(
        lambda b, a: {"z": a + 1, "y": models.tf.strings.length(b)},
        {"b": ("string", (None, 2)), "a": ("float16", ())},
    )
    found = read_served_signature(folder, "m")
    assert (found.tags, found.name) == (("serve",), "serving_default")
    assert found.signature.inputs == {
        "a": TensorInfo("FP16", (), "serving_default_a:0"),
        "b": TensorInfo("BYTES", (-1, 2), "serving_default_b:0"),
    }
    assert list(found.signature.outputs) == ["y", "z"]
    assert [info.dims for info in found.signature.outputs.values()] == [(-1, 2), ()]


def test_a_tensor_of_unknown_rank_has_no_dimensions(models):
    folder = models.identity("float32", None)
    assert read_served_signature(folder, "m").signature.inputs["IN"].dims is None


def test_a_tag_selects_the_graph_and_unknown_tags_list_the_known_ones(tagged):
    assert list(read_served_signature(tagged, "m").signature.inputs) == ["x"]
    assert list(read_served_signature(tagged, "m", "gpu,serve").signature.inputs) == ["y"]
    assert (
        refused(tagged, "m", "gpu")
        == "unable to load model 'm', expected 'gpu' tag, there is: 'gpu,serve', 'serve'"
    )


def test_without_a_default_signature_the_first_one_is_taken(tagged):
    assert read_served_signature(tagged, "m").name == "also_x"
    assert read_served_signature(tagged, "m", "", "sign_x").name == "sign_x"
    message = "unable to load model 'm', expected 'x' signature, there is: 'also_x', 'sign_x'"
    assert refused(tagged, "m", "", "x") == message


def test_a_model_without_signatures_is_refused(models):
    module = models.tf.Module()
    models.tf.saved_model.save(module, str(models.version / "model.savedmodel"))
    assert refused(models.version / "model.savedmodel", "m") == (
        "unable to load model 'm', expected 'serving_default' signature, there is: none"
    )


def test_the_text_form_is_read_too(models):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    folder = models.saved_model(lambda x: {"y": x}, {"x": ("complex64", (None,))})
    saved = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    (folder / "saved_model.pb").unlink()
    (folder / "saved_model.pbtxt").write_text(text_format.MessageToString(saved))
    assert (
        refused(folder, "m")
        == "unable to process input 'x' for 'm', unsupported datatype 'DT_COMPLEX64'"
    )


def test_components_of_ragged_and_sparse_outputs_have_their_own_names(models):
    def parts(x):
        return {
            "r": models.tf.strings.split(x),
            "s": models.tf.sparse.from_dense(models.tf.strings.length(x)),
            "x": x,
        }

    signature = read_served_signature(
        models.saved_model(parts, {"x": ("string", (None,))}), "m"
    ).signature
    assert not signature.outputs_have_rows
    assert {name: (info.datatype, info.dims) for name, info in signature.outputs.items()} == {
        "r": ("BYTES", (-1,)), "r_1": ("INT64", (-1,)), "s": ("INT64", (-1, 1)), "s_1": ("INT32", (-1,)),
        "s_2": ("INT64", (1,)), "x": ("BYTES", (-1,)),
    }  # fmt: skip


def test_a_component_with_the_name_of_another_output_is_rejected(models):
    folder = models.saved_model(
        lambda x: {"r": models.tf.strings.split(x), "r_1": x}, {"x": ("string", (None,))}
    )
    assert refused(folder, "m") == (
        "unable to process output 'r_1' for 'm', its component 'r_1' has the name of another input or output"
    )


def test_a_damaged_file_and_an_empty_folder_are_named(models):
    folder = models.identity("float32", (2,))
    file = folder / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:-40])
    assert f"{file} is not a valid SavedModel" in refused(folder, "m")
    file.unlink()
    assert refused(folder, "m").startswith(
        f"{folder} is not a SavedModel: it must be a folder with a file saved_model.pb"
    )


def test_reading_needs_no_tensorflow(models):
    folder = models.identity("float32", (2,))
    code = (
        "import sys; from pathlib import Path; from tritonpy_backend_tf.saved_model_file import read_served_signature;"
        f"assert list(read_served_signature(Path({str(folder)!r}), 'm').signature.inputs) == ['IN']; sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path("/")).returncode == 0
