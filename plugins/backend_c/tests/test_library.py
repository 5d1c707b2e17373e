from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from plugins.backend_c.tests.conftest import SOURCES, compile_backend
from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_c.alias import empty_library, provide_names
from tritonpy_backend_c.elf import read_library
from tritonpy_backend_c.library import VARIABLE, library_path, load_library

COUNTS = {"TRITONBACKEND_": 91, "TRITONSERVER_": 172, "TRITONREPOAGENT_": 12, "TRITONCACHE_": 6}


def test_every_function_of_triton_s_interfaces_is_exported() -> None:
    defined = read_library(library_path()).defined
    assert {prefix: sum(name.startswith(prefix) for name in defined) for prefix in COUNTS} == COUNTS


def test_a_function_that_is_not_supported_names_itself() -> None:
    library = ctypes.CDLL(str(library_path()))
    function = library.TRITONSERVER_ServerOptionsSetServerId
    function.restype = ctypes.c_void_p
    text, code = library.TRITONSERVER_ErrorMessage, library.TRITONSERVER_ErrorCode
    text.restype, text.argtypes, code.argtypes = (
        ctypes.c_char_p,
        [ctypes.c_void_p],
        [ctypes.c_void_p],
    )
    error = function()
    assert text(error) == b"tritonpy does not support TRITONSERVER_ServerOptionsSetServerId()"
    assert code(error) == 5  # UNSUPPORTED
    library.TRITONSERVER_ErrorDelete.argtypes = [ctypes.c_void_p]
    library.TRITONSERVER_ErrorDelete(error)


def test_nothing_may_be_deleted() -> None:
    library = ctypes.CDLL(str(library_path()))
    unsupported = set(load_library().unsupported().decode().split())
    deletes = [
        name for name in read_library(library_path()).defined
        if name.endswith("Delete") and name not in unsupported
    ]  # fmt: skip
    assert len(deletes) > 10
    for name in deletes:
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
        function(None)


@pytest.mark.parametrize(
    ("function", "number", "text"),
    [
        ("TRITONSERVER_DataTypeString", 11, b"FP32"),
        ("TRITONSERVER_DataTypeString", 99, b"<invalid>"),
        ("TRITONSERVER_MemoryTypeString", 1, b"CPU_PINNED"),
        ("TRITONSERVER_ParameterTypeString", 4, b"BYTES"),
        ("TRITONSERVER_InstanceGroupKindString", 2, b"GPU"),
        ("TRITONSERVER_InferenceTraceLevelString", 4, b"TIMESTAMPS"),
        ("TRITONSERVER_InferenceTraceActivityString", 6, b"REQUEST_END"),
    ],
)
def test_names_of_values(function: str, number: int, text: bytes) -> None:
    name = getattr(ctypes.CDLL(str(library_path())), function)
    name.restype = ctypes.c_char_p
    assert name(number) == text


def test_a_missing_library_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tritonpy_backend_c.library import _load

    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.so"))
    with pytest.raises(Unavailable, match="install a wheel of tritonpy-backend-c"):
        _load.__wrapped__()


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("no library")
    with pytest.raises(InvalidArgument, match=r"x\.so' is no shared library"):
        read_library(tmp_path / "x.so")
    with pytest.raises(InvalidArgument, match=r"y\.so' is no shared library"):
        read_library(tmp_path / "y.so")


def test_an_empty_library_is_loaded_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "file.so"
    path.write_bytes(empty_library("libtritonserver-0123.so"))
    found = read_library(path)
    assert (found.needed, found.defined) == ((), ())
    ctypes.CDLL(str(path))
    # The loader takes it for every later library that names it.
    ctypes.CDLL("libtritonserver-0123.so")


def test_a_backend_may_ask_for_the_server_s_library_by_a_name_of_a_wheel(
    backends: Path, tmp_path: Path
) -> None:
    named, target = tmp_path / "libtritonserver-89ab.so", tmp_path / "libtriton_x.so"
    (tmp_path / "empty.c").touch()
    compile_backend(tmp_path / "empty.c", named, f"-Wl,-soname,{named.name}")
    compile_backend(SOURCES / "identity.c", target, "-Wl,--no-as-needed", str(named))
    found = read_library(target)
    assert found.host_names == [named.name]
    named.unlink()
    provide_names(found)
    ctypes.CDLL(str(library_path()), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(target))
