from __future__ import annotations

import importlib.util
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from tritonpy import InvalidArgument, Unavailable, Unsupported
from tritonpy_backend_transformer import opening
from tritonpy_backend_transformer.folder import read_folder
from tritonpy_backend_transformer.opening import Place, has_cuda, open_model
from tritonpy_backend_transformer.settings import settings

CPU = Place("cpu", (0,))


def opened(path, place=CPU, parallel=1, threads=1, **parameters):
    return open_model(read_folder(path), settings(parameters, translates=False), place, parallel, threads)


def test_a_model_is_opened_as_its_kind(decoder, encoder, translator):
    kinds = [type(opened(path)).__name__ for path, _ in (decoder, encoder, translator)]
    assert kinds == ["Generator", "Encoder", "Translator"]


def test_batches_run_at_the_same_time_on_one_copy(decoder):
    assert opened(decoder[0], parallel=3).num_generators == 3


def test_a_precision_is_that_of_the_library(decoder):
    assert opened(decoder[0], precision="int8").compute_type == "int8_float32"
    assert opened(decoder[0], precision="fp32").compute_type == "float32"


def test_eight_bits_give_nearly_the_same_numbers(decoder, encoder):
    def states(**parameters):
        return np.array(opened(encoder[0], **parameters).forward_batch([[1, 50, 60, 70]]).last_hidden_state)

    exact, rounded = states(), states(precision="int8")
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, atol=0.2)


def test_a_precision_that_this_machine_lacks_is_refused(decoder):
    with pytest.raises(Unsupported, match="'precision' bf16 is not possible on this CPU, which can do: fp32"):
        opened(decoder[0], precision="bf16")


def test_what_the_library_refuses_is_told(tmp_path, decoder):
    shutil.copytree(decoder[0], tmp_path / "m")
    folder = read_folder(tmp_path / "m")
    (tmp_path / "m" / "vocabulary.json").write_text("[")
    with pytest.raises(InvalidArgument, match="CTranslate2 cannot load "):
        open_model(folder, settings({}, translates=False), CPU, 1, 1)


class Library:
    """Stands in for CTranslate2 on a machine with GPUs."""

    def __init__(self, count) -> None:
        self.count = count
        self.made = []
        for name in ("Generator", "Translator", "Encoder"):
            setattr(self, name, lambda *args, name=name, **options: self.made.append((name, args, options)))

    def get_cuda_device_count(self):
        return self.count

    def get_supported_compute_types(self, device, index):
        return {"float32", "float16", "int8", "int8_float16"} if index == 0 else {"float32"}


@pytest.fixture
def gpus(monkeypatch):
    def see(count):
        library = Library(count)
        monkeypatch.setattr(opening, "runtime", lambda: library)
        monkeypatch.setattr(opening, "_preload_cuda", lambda: None)
        return library

    return see


def test_a_gpu_is_named_by_its_number(decoder, gpus):
    library = gpus(2)
    opened(decoder[0], Place("cuda", (0,)), parallel=4, precision="int8_fp16", flash_attention="true")
    [(name, args, options)] = library.made
    assert (name, args) == ("Generator", (str(decoder[0]), "cuda"))
    assert options == {
        "device_index": 0, "compute_type": "int8_float16", "inter_threads": 4, "intra_threads": 1, "max_queued_batches": -1,
        "flash_attention": True,
    }  # fmt: skip


def test_several_gpus_have_a_copy_each(decoder, gpus):
    library = gpus(2)
    opened(decoder[0], Place("cuda", (0, 1)))
    assert library.made[0][2]["device_index"] == [0, 1]


def test_a_gpu_that_is_not_there_is_told(decoder, gpus):
    gpus(1)
    with pytest.raises(Unavailable, match="CTranslate2 sees 1 NVIDIA GPUs, the model wants number 1"):
        opened(decoder[0], Place("cuda", (1,)))


def test_every_gpu_must_be_able_to(decoder, gpus):
    gpus(2)
    with pytest.raises(Unsupported, match="'precision' fp16 is not possible on this GPU, which can do: fp32"):
        opened(decoder[0], Place("cuda", (0, 1)), precision="fp16")


def test_the_libraries_of_a_gpu_are_looked_for_among_the_packages(monkeypatch):
    for there in (True, False):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda _name, there=there: SimpleNamespace() if there else None
        )
        assert has_cuda() is there
