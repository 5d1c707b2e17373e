from __future__ import annotations

from tritonpy_backend_trt.texts import shape_text


def test_shapes_are_written_as_triton_does():
    assert shape_text((-1, 3)) == "[-1,3]"
    assert shape_text(()) == "[]"
