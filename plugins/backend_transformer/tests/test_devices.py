from __future__ import annotations

import importlib.util
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from tritonpy import InvalidArgument, Unavailable, Unsupported
from tritonpy_backend_transformer import devices
from tritonpy_backend_transformer.devices import DeviceSet, has_cuda, open_model
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_backend_transformer.settings import read_settings

CPU = DeviceSet("cpu", (0,))


def opened(path, device_set=CPU, parallel=1, threads=1, **parameters):
    return open_model(
        read_folder(path),
        read_settings(parameters, is_encoder_decoder=False),
        device_set,
        parallel,
        threads,
    )


def test_each_kind_of_model_has_its_class(decoder, encoder, translator):
    kinds = [type(opened(path)).__name__ for path, _ in (decoder, encoder, translator)]
    assert kinds == ["Generator", "Encoder", "Translator"]


def test_parallel_batches_share_the_weights(decoder):
    assert opened(decoder[0], parallel=3).num_generators == 3


def test_precision_selects_the_compute_type(decoder):
    assert opened(decoder[0], precision="int8").compute_type == "int8_float32"
    assert opened(decoder[0], precision="fp32").compute_type == "float32"


def test_int8_results_are_close_to_exact_results(decoder, encoder):
    def states(**parameters):
        return np.array(
            opened(encoder[0], **parameters).forward_batch([[1, 50, 60, 70]]).last_hidden_state
        )

    exact, rounded = states(), states(precision="int8")
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, atol=0.2)


def test_an_unsupported_precision_is_rejected(decoder):
    with pytest.raises(
        Unsupported, match="'precision' bf16 is not possible on this CPU, which supports: fp32"
    ):
        opened(decoder[0], precision="bf16")


def test_errors_of_the_library_are_reported(tmp_path, decoder):
    shutil.copytree(decoder[0], tmp_path / "m")
    folder = read_folder(tmp_path / "m")
    (tmp_path / "m" / "vocabulary.json").write_text("[")
    with pytest.raises(InvalidArgument, match="CTranslate2 cannot load "):
        open_model(folder, read_settings({}, is_encoder_decoder=False), CPU, 1, 1)


class Library:
    """A fake CTranslate2 with GPUs."""

    def __init__(self, count) -> None:
        self.count = count
        self.made = []
        for name in ("Generator", "Translator", "Encoder"):
            setattr(
                self,
                name,
                lambda *args, name=name, **options: self.made.append((name, args, options)),
            )

    def get_cuda_device_count(self):
        return self.count

    def get_supported_compute_types(self, device, index):
        return {"float32", "float16", "int8", "int8_float16"} if index == 0 else {"float32"}


@pytest.fixture
def gpus(monkeypatch):
    def see(count):
        library = Library(count)
        monkeypatch.setattr(devices, "runtime", lambda: library)
        monkeypatch.setattr(devices, "_preload_cuda", lambda: None)
        return library

    return see


def test_a_model_is_opened_on_a_gpu(decoder, gpus):
    library = gpus(2)
    opened(
        decoder[0],
        DeviceSet("cuda", (0,)),
        parallel=4,
        precision="int8_fp16",
        flash_attention="true",
    )
    [(name, args, options)] = library.made
    assert (name, args) == ("Generator", (str(decoder[0]), "cuda"))
    assert options == {
        "device_index": 0, "compute_type": "int8_float16", "inter_threads": 4, "intra_threads": 1, "max_queued_batches": -1,
        "flash_attention": True,
    }  # fmt: skip


def test_each_gpu_has_a_copy_of_the_model(decoder, gpus):
    library = gpus(2)
    opened(decoder[0], DeviceSet("cuda", (0, 1)))
    assert library.made[0][2]["device_index"] == [0, 1]


def test_a_missing_gpu_is_an_error(decoder, gpus):
    gpus(1)
    with pytest.raises(Unavailable, match="CTranslate2 finds 1 NVIDIA GPUs, the model needs GPU 1"):
        opened(decoder[0], DeviceSet("cuda", (1,)))


def test_every_gpu_must_support_the_precision(decoder, gpus):
    gpus(2)
    with pytest.raises(
        Unsupported, match="'precision' fp16 is not possible on this GPU, which supports: fp32"
    ):
        opened(decoder[0], DeviceSet("cuda", (0, 1)), precision="fp16")


def test_has_cuda_checks_the_installed_packages(monkeypatch):
    for installed in (True, False):
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda _name, installed=installed: SimpleNamespace() if installed else None,
        )
        assert has_cuda() is installed
