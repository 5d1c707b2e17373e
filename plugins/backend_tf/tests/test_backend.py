from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tritonpy_backend_tf
from tritonpy import DTYPES, InstanceContext, TritonError
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_tf.backend import TensorFlowBackend
from tritonpy_testing import BackendContract


class TensorFlowContract(BackendContract):
    plugin_class = TensorFlowBackend
    plugin = tritonpy_backend_tf
    name = "tensorflow"

    @pytest.fixture(autouse=True)
    def _models(self, models):
        self.models = models

    def build(self) -> None:
        raise NotImplementedError

    def write_model(self, version_folder: Path) -> None:
        self.models.version = version_folder
        self.build()


class TestSavedModel(TensorFlowContract):
    config = 'name: "m" backend: "tensorflow" max_batch_size: 8'

    def build(self) -> None:
        self.models.add_sub()

    def bad_inputs(self, harness, random):
        return {"INPUT0": np.ones((1, 15), np.int32), "INPUT1": np.ones((1, 14), np.int32)}


class TestTexts(TensorFlowContract):
    config = 'name: "m" backend: "tensorflow" max_batch_size: 8'

    def build(self) -> None:
        self.models.identity("string", (None, 2))

    def make_inputs(self, harness, random, rows):
        words = [b"", "é".encode(), b"digit", b"\xff\x00\xfe", b"ends with zero\x00"]
        return {
            "IN": np.array([[random.choice(words) for _ in range(2)] for _ in range(rows)], object)
        }


class TestBfloat16(TensorFlowContract):
    config = 'name: "m" backend: "tensorflow" max_batch_size: 8'

    def build(self) -> None:
        self.models.identity("bfloat16", (None, 2))


class TestUnbatched(TensorFlowContract):
    config = 'name: "m" backend: "tensorflow"'

    def build(self) -> None:
        self.models.identity("float64", (2, 3))


class TestGraphDef(TensorFlowContract):
    config = 'name: "m" backend: "tensorflow" platform: "tensorflow_graphdef"'

    def build(self) -> None:
        self.models.add_sub_graph()

    def bad_inputs(self, harness, random):
        return {"INPUT0": np.ones((1, 15), np.int32), "INPUT1": np.ones((1, 14), np.int32)}


class TestKeras(TensorFlowContract):
    config = 'name: "m" backend: "tensorflow" platform: "tensorflow_savedmodel" default_model_filename: "model.keras"'

    def build(self) -> None:
        self.models.keras()

    def bad_inputs(self, harness, random):
        return {"image": np.ones((1, 63), np.float32)}


def array(value, rows=1):
    return np.full((rows, 16), value, np.int32)


def output(response, name):
    return next(tensor for tensor in response.outputs if tensor.name == name).numpy()


def fields(config):
    return [
        (item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims))
        for item in (*config.input, *config.output)
    ]


def parameter(key, value):
    return f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


ADD_SUB = [
    ("INPUT0", "INT32", [16]),
    ("INPUT1", "INT32", [16]),
    ("OUTPUT0", "INT32", [16]),
    ("OUTPUT1", "INT32", [16]),
]


@pytest.mark.parametrize("build", ["add_sub", "add_sub_graph"])
def test_a_model_without_configuration_is_served(models, load, build):
    getattr(models, build)()
    with load() as harness:
        config = harness.model.config
        assert (config.max_batch_size, config.WhichOneof("scheduling_choice")) == (
            4,
            "dynamic_batching",
        )
        assert fields(config) == ADD_SUB
        [[answer]] = harness.execute(harness.request({"INPUT0": array(7), "INPUT1": array(2)}))
    assert output(answer, "OUTPUT0").tolist() == array(9).tolist()
    assert output(answer, "OUTPUT1").tolist() == array(5).tolist()


def test_a_keras_file_alone_serves_it_with_the_names_of_its_export(models, load):
    import keras

    path = models.keras()
    rows = np.random.default_rng(1).random((3, 64), np.float32)
    expected = keras.saving.load_model(path)(rows).numpy()
    with load() as harness:
        assert fields(harness.model.config) == [("image", "FP32", [64]), ("output_0", "FP32", [10])]
        assert harness.model.config.max_batch_size == 4
        [[answer]] = harness.execute(harness.request({"image": rows}))
    assert np.allclose(output(answer, "output_0"), expected, atol=1e-6)


def test_the_servers_default_batch_size_is_taken(models, load):
    models.add_sub()
    harness = load()
    harness.model.default_max_batch_size = 32
    with harness:
        assert harness.model.config.max_batch_size == 32


def test_a_parameter_picks_the_signature(models, load):
    def double(x):
        return {"twice": x * 2}

    def both(a, b):
        return {"sum": a + b, "count": models.tf.size(a)}

    models.saved_model(
        double,
        {"x": ("float32", (None, 2))},
        both=(both, {"a": ("int64", (None,)), "b": ("int64", ())}),
    )
    with load() as harness:
        assert fields(harness.model.config) == [("x", "FP32", [2]), ("twice", "FP32", [2])]
    with load(TF_SIGNATURE_DEF="both") as harness:
        assert harness.model.config.max_batch_size == 0, "a scalar cannot be batched"
        assert fields(harness.model.config) == [
            ("a", "INT64", [-1]), ("b", "INT64", [1]), ("count", "INT32", [1]), ("sum", "INT64", [-1]),
        ]  # fmt: skip
        [[answer]] = harness.execute(
            harness.request({"a": np.array([1, 2, 3]), "b": np.array([10])})
        )
    assert output(answer, "sum").tolist() == [11, 12, 13]
    assert output(answer, "count").tolist() == [3]
    with pytest.raises(TritonError) as caught, load(TF_SIGNATURE_DEF="neither"):
        pass
    assert caught.value.message == (
        "unable to auto-complete model configuration for 'm', failed to load model: unable to load model 'm', expected"
        " 'neither' signature, there is: 'both', 'serving_default'"
    )


def test_scalar_texts_keep_their_bytes(models, load):
    models.saved_model(lambda x: {"y": models.tf.strings.join([x, "\0"])}, {"x": ("string", ())})
    with load() as harness:
        [[answer]] = harness.execute(harness.request({"x": np.array([b"a\xff"], object)}))
    assert output(answer, "y").tolist() == [b"a\xff\0"]


def test_a_ragged_output_is_served_as_its_parts(models, load):
    models.saved_model(lambda x: {"words": models.tf.strings.split(x)}, {"x": ("string", (None,))})
    with load() as harness:
        assert harness.model.config.max_batch_size == 0, "its rows are not those of the requests"
        [[answer]] = harness.execute(harness.request({"x": np.array([b"a b", b"", b"c"], object)}))
    assert output(answer, "words").tolist() == [b"a", b"b", b"c"]
    assert output(answer, "words_1").tolist() == [0, 2, 2, 3]


def test_a_sparse_output_is_served_as_its_parts(models, load):
    models.saved_model(lambda x: {"y": models.tf.sparse.from_dense(x)}, {"x": ("int32", (None, 3))})
    with load() as harness:
        [[answer]] = harness.execute(
            harness.request({"x": np.array([[0, 5, 0], [7, 0, 0]], np.int32)})
        )
    assert output(answer, "y").tolist() == [[0, 1], [1, 0]]
    assert output(answer, "y_1").tolist() == [5, 7]
    assert output(answer, "y_2").tolist() == [2, 3]


def test_ragged_inputs_of_several_requests_are_one_tensor(models, load):
    def sums(values, ends):
        return {
            "sums": models.tf.math.segment_sum(
                values,
                models.tf.searchsorted(ends, models.tf.range(models.tf.size(values)), side="right"),
            )
        }

    models.saved_model(sums, {"values": ("float32", (None,)), "ends": ("int32", (None,))})
    text = """
        max_batch_size: 8
        input { name: "values" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "sums" data_type: TYPE_FP32 dims: 1 reshape { shape: [] } }
        batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32 source_input: "values" }"""
    with load(text) as harness:
        requests = [harness.request({"values": np.ones((1, size), np.float32)}) for size in (2, 5)]
        [first], [second] = harness.execute(*requests)
    assert [output(answer, "sums").ravel().tolist() for answer in (first, second)] == [[2], [5]]


def test_requests_of_a_batch_get_their_own_rows_and_outputs(models, load):
    models.add_sub()
    with load("max_batch_size: 8") as harness:
        requests = [
            harness.request({"INPUT0": array(1, 2), "INPUT1": array(1, 2)}),
            harness.request({"INPUT0": array(5), "INPUT1": array(3)}, ["OUTPUT1"]),
        ]
        [first], [second] = harness.execute(*requests)
    assert output(first, "OUTPUT0").tolist() == array(2, 2).tolist()
    assert [tensor.name for tensor in second.outputs] == ["OUTPUT1"]
    assert output(second, "OUTPUT1").tolist() == array(2).tolist()


def test_both_ends_of_an_execution_are_stamped(models, load):
    models.add_sub()
    with load() as harness:
        request = harness.request({"INPUT0": array(1), "INPUT1": array(1)})
        harness.execute(request)
    assert request.batch.start_ns < request.batch.input_end_ns < request.batch.infer_end_ns


def test_a_tensorflow_error_fails_the_batch_with_its_text(models, load):
    models.network()
    with load() as harness:
        [[answer]] = harness.execute(harness.request({"image": np.ones((1, 3), np.float32)}))
    assert answer.error.message.startswith(
        "Matrix size-incompatible: In[0]: [1,3], In[1]: [64,256]"
    )
    assert "Original stack trace" not in answer.error.message


def test_an_optional_input_of_a_graph_may_be_left_out(models, load):
    def build(tf1):
        bias = tf1.placeholder_with_default(np.full(2, 10, np.float32), (2,), "BIAS")
        tf1.add(tf1.placeholder("float32", (2,), "IN"), bias, "OUT")

    models.graph_def(build)
    text = """
        input [{ name: "IN" data_type: TYPE_FP32 dims: 2 }, { name: "BIAS" data_type: TYPE_FP32 dims: 2 optional: true }]
        output { name: "OUT" data_type: TYPE_FP32 dims: 2 }"""
    with load(text) as harness:
        one = np.ones(2, np.float32)
        [[without]] = harness.execute(harness.request({"IN": one}))
        [[given]] = harness.execute(harness.request({"IN": one, "BIAS": one}))
    assert output(without, "OUT").tolist() == [11, 11]
    assert output(given, "OUT").tolist() == [2, 2]


def test_dynamic_shapes_differ_from_request_to_request(models, load):
    models.saved_model(
        lambda x: {"sum": models.tf.reduce_sum(x, axis=2), "x": x},
        {"x": ("float32", (None, None, None))},
    )
    with load() as harness:
        assert fields(harness.model.config) == [
            ("x", "FP32", [-1, -1]),
            ("sum", "FP32", [-1]),
            ("x", "FP32", [-1, -1]),
        ]
        for shape in ((1, 2, 3), (2, 5, 1), (1, 1, 0)):
            [[answer]] = harness.execute(harness.request({"x": np.ones(shape, np.float32)}))
            assert output(answer, "sum").tolist() == np.ones(shape).sum(2).tolist()


def test_a_configuration_that_contradicts_the_model_fails_the_load(models, load):
    models.add_sub()
    text = """
        input [{ name: "INPUT0" data_type: TYPE_FP32 dims: 16 }, { name: "INPUT1" data_type: TYPE_FP32 dims: 16 }]
        output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 } max_batch_size: 4"""
    with pytest.raises(TritonError) as caught, load(text):
        pass
    assert caught.value.message == (
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'INPUT0', model provides TYPE_INT32"
    )


def test_dimensions_that_include_the_batch_disable_batching(models, load):
    models.identity("float32", (None, 2))
    text = """
        input { name: "IN" data_type: TYPE_FP32 dims: [-1, 2] } output { name: "OUT" data_type: TYPE_FP32 dims: [-1, 2] }"""
    with load(text) as harness:
        assert harness.model.config.max_batch_size == 0
        assert harness.model.config.WhichOneof("scheduling_choice") is None


def test_instances_run_at_the_same_time_in_one_session(models, load):
    models.add_sub()
    with load("max_batch_size: 8") as harness:
        second = TensorFlowBackend(harness.model, InstanceContext("m_1", "CPU", 0, 1))
        assert second._session is harness.instance._session
        with ThreadPoolExecutor(1) as pool:
            other = [
                pool.submit(
                    harness.execute, harness.request({"INPUT0": array(n), "INPUT1": array(1)})
                )
                for n in range(50)
            ]
            for future, number in zip(other, range(50), strict=True):
                [[answer]] = future.result()
                assert output(answer, "OUTPUT0").tolist() == array(number + 1).tolist()
        second.close()
        second.close()
        [[answer]] = harness.execute(harness.request({"INPUT0": array(1), "INPUT1": array(1)}))
        assert answer.error is None, "the other instance needs the session still"


def test_the_memory_of_the_weights_is_reported_while_loaded(models, load):
    models.network()
    with load() as harness:
        shared = harness.model.shared
        [usage] = TensorFlowBackend.shared_memory_usage(shared)
        assert (usage.type, usage.id) == ("CPU", 0)
        weights = (64 * 256 + 256 * 256) * 4
        assert weights <= usage.byte_size < weights + 1000
    assert TensorFlowBackend.shared_memory_usage(shared) == []


def test_states_of_a_sequence_are_kept(models, load):
    models.saved_model(
        lambda x, total: {"y": x + total, "new_total": x + total},
        {"x": ("int32", (None, 1)), "total": ("int32", (None, 1))},
    )
    text = """max_batch_size: 4 sequence_batching { state { input_name: "total" output_name: "new_total" data_type: TYPE_INT32 dims: 1 } }"""
    with load(text) as harness:
        assert fields(harness.model.config) == [("x", "INT32", [1]), ("y", "INT32", [1])]


@pytest.mark.parametrize(
    "kind",
    [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int64",
        "float16",
        "bfloat16",
    ],
)
def test_every_type_goes_in_and_out(models, load, kind):
    models.identity(kind, (None, 3))
    with load() as harness:
        name = fields(harness.model.config)[0][1]
        values = np.array([[0, 1, 1]]).astype(DTYPES[name])
        [[answer]] = harness.execute(harness.request({"IN": values}))
    found = output(answer, "OUT")
    assert found.dtype == DTYPES[name]
    assert found.tolist() == values.tolist()
