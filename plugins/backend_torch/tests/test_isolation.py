from __future__ import annotations

import pytest

from tritonpy_backend_torch.archive import Form
from tritonpy_backend_torch.isolation import isolation_for
from tritonpy_backend_torch.settings import COMPILE


@pytest.mark.parametrize("form", Form)
def test_compiled_code_and_classes_run_in_a_process(form):
    alone = form not in {Form.TORCHSCRIPT, Form.EXPORTED}
    assert isolation_for(form, {}) == ("process" if alone else "thread")
    assert isolation_for(form, {COMPILE: "{}"}) == "process"


@pytest.mark.parametrize("place", ["process", "thread"])
@pytest.mark.parametrize("form", Form)
def test_the_parameter_has_the_last_word(form, place):
    assert isolation_for(form, {"isolation": place, COMPILE: "{}"}) == place
