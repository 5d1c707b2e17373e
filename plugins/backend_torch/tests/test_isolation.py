from __future__ import annotations

import pytest

from tritonpy_backend_torch.archive import ArchiveFormat
from tritonpy_backend_torch.isolation import default_isolation
from tritonpy_backend_torch.settings import COMPILE


@pytest.mark.parametrize("model_format", ArchiveFormat)
def test_compiled_code_and_classes_run_in_a_process(model_format):
    is_isolated = model_format not in {ArchiveFormat.TORCHSCRIPT, ArchiveFormat.EXPORTED}
    assert default_isolation(model_format, {}) == ("process" if is_isolated else "thread")
    assert default_isolation(model_format, {COMPILE: "{}"}) == "process"


@pytest.mark.parametrize("place", ["process", "thread"])
@pytest.mark.parametrize("model_format", ArchiveFormat)
def test_the_isolation_parameter_takes_precedence(model_format, place):
    assert default_isolation(model_format, {"isolation": place, COMPILE: "{}"}) == place
