from __future__ import annotations

from tritonpy_config.known_backends import (
    KNOWN_FORMATS,
    BackendFiles,
    ModelFormat,
    formats,
    package_of,
    platforms_of,
)


def test_every_known_backend_has_a_package():
    assert all(package_of(form.backend) for form in KNOWN_FORMATS)
    assert package_of("stranger") is None


def test_an_unknown_backend_may_have_any_platform():
    assert platforms_of("stranger") == ()
    assert platforms_of("openvino") == ()
    assert platforms_of("onnxruntime") == ("onnxruntime_onnx",)


def test_an_installed_backend_adds_only_new_formats():
    installed = BackendFiles("onnxruntime", ("onnxruntime_onnx",), ("model.onnx", "model.ort"))
    assert formats([installed]) == [
        *KNOWN_FORMATS,
        ModelFormat("onnxruntime", "onnxruntime_onnx", "model.ort"),
    ]


def test_a_backend_without_files_is_found_by_any_of_its_platforms():
    added = formats([BackendFiles("sklearn", ("sk", "sk_pickle"))])[len(KNOWN_FORMATS) :]
    assert {form.platform for form in added} == {"sk", "sk_pickle"}
    assert {form.filename for form in added} == {""}
