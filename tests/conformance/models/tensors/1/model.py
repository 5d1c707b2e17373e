"""Creates output tensors from all kinds of arrays; WHAT selects the kind."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class Texted:
    def __str__(self):
        return "as text"


def strings(*values, dtype=np.object_):
    return np.array(values, dtype)


MAKE = {
    "int32": lambda: np.arange(4, dtype=np.int32),
    "python ints": lambda: np.array([1, 2, 3]),
    "python floats": lambda: np.array([0.1, 0.2]),
    "no dimension": lambda: np.array(3.5, np.float32),
    "numpy scalar": lambda: np.float32(3.5),
    "three dimensions": lambda: np.arange(8, dtype=np.int16).reshape(2, 2, 2),
    "no elements": lambda: np.zeros((0, 3), np.float32),
    "strided": lambda: np.arange(8, dtype=np.int32)[::2],
    "reversed": lambda: np.arange(4, dtype=np.int32)[::-1],
    "transposed": lambda: np.arange(6, dtype=np.int32).reshape(2, 3).T,
    "fortran": lambda: np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "broadcast": lambda: np.broadcast_to(np.int64(7), (3,)),
    "big endian": lambda: np.arange(3, dtype=">i4"),
    "read only": lambda: np.frombuffer(b"abcd", np.uint8),
    "matrix": lambda: np.asmatrix(np.arange(4, dtype=np.int32)),
    "bools": lambda: np.array([True, False]),
    "bytes objects": lambda: strings(b"one", b"", b"\xff\x00z"),
    "text objects": lambda: strings("one", "zw\u00f6lf", ""),
    "number objects": lambda: strings(1, 2.5, True, None),
    "other objects": lambda: strings(Texted(), b"x"),
    "mixed objects": lambda: strings("a", b"\xfe", 3),
    "fixed bytes": lambda: strings(b"one", b"three", dtype="S"),
    "fixed bytes with zeros": lambda: strings(b"a\x00", b"\x00b", dtype="S4"),
    "fixed text": lambda: strings("one", "zw\u00f6lf", dtype="U"),
    "no strings": lambda: np.array([], np.object_),
    "no rows of strings": lambda: np.zeros((0, 2), np.object_),
    "one string": lambda: np.array(b"alone", np.object_),
    "strings in rows": lambda: np.array([[b"a", b"b"], [b"c", b"d"]], np.object_),
    "strings transposed": lambda: np.array([[b"a", b"b"], [b"c", b"d"]], np.object_).T,
    "strings strided": lambda: strings(b"a", b"b", b"c", b"d")[::2],
    "surrogates": lambda: strings("\udcff"),
    "lists": lambda: np.array([[1, 2], [3]], np.object_),
    "large string": lambda: strings(b"x" * 70000),
    "specials": lambda: np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
    "uint64": lambda: np.array([2**64 - 1], np.uint64),
}


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        what = pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy()[0].decode()
        name, _, dlpack = what.partition("/")
        output = pb_utils.Tensor("OUT", MAKE[name]())
        if dlpack:
            output = pb_utils.Tensor.from_dlpack("OUT", output)
        return pb_utils.InferenceResponse([output])
