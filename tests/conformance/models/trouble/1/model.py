"""Failures in `execute`; WHAT selects the failure."""

from __future__ import annotations

import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class OwnError(Exception):
    def __str__(self):
        return "an exception of the model's own"


def tensor(name="OUT", values=(1.0, 2.0), kind=np.float32):
    return pb_utils.Tensor(name, np.array(values, kind))


def good():
    return pb_utils.InferenceResponse([tensor(), tensor("MORE", [7], np.int32)])


def what(request):
    return pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy().flat[0].decode()


class TritonPythonModel:
    def execute(self, requests):
        kind, _, argument = what(requests[0]).partition(":")
        return getattr(self, kind)(requests, *([argument] if argument else []))

    def fine(self, requests):
        return [good() for _ in requests]

    def raises(self, requests):
        raise ValueError("this was no good value")

    def raises_nothing_to_say(self, requests):
        raise RuntimeError

    def raises_own(self, requests):
        raise OwnError

    def raises_deep(self, requests):
        def inner(depth):
            return {}["missing"] if depth == 0 else inner(depth - 1)

        return inner(3)

    def raises_from_cause(self, requests):
        try:
            int("seven")
        except ValueError as error:
            raise RuntimeError("the number was not read") from error

    def raises_in_handler(self, requests):
        try:
            int("seven")
        except ValueError:
            raise RuntimeError("the handler failed too")  # noqa: B904

    def raises_unicode(self, requests):
        raise ValueError("Größe „7“ ✓ 𝄞")

    def raises_lines(self, requests):
        raise ValueError("first line\nsecond line\n")

    def raises_model_exception(self, requests):
        raise pb_utils.TritonModelException("the model's own exception")

    def raises_error_object(self, requests):
        raise pb_utils.TritonError("an error is no exception")

    def raises_assertion(self, requests):
        assert len(requests) == 17

    def raises_with_note(self, requests):
        error = ValueError("with a note")
        error.add_note("this is the note")
        raise error

    def raises_group(self, requests):
        raise ExceptionGroup("several", [ValueError("one"), TypeError("two")])

    def raises_interrupt(self, requests):
        raise KeyboardInterrupt

    def leaves(self, requests):
        sys.exit(3)

    def leaves_at_once(self, requests):
        os._exit(4)

    def unknown_input(self, requests):
        return pb_utils.get_input_tensor_by_name(requests[0], "NOT_THERE").as_numpy()

    def nothing(self, requests):
        return None

    def no_list(self, requests, kind):
        kinds = {
            "tuple": (good(),),
            "dict": {},
            "response": good(),
            "text": "text",
            "number": 3,
            "generator": iter([good()]),
        }
        return kinds[kind]

    def too_few(self, requests):
        return []

    def too_many(self, requests):
        return [good() for _ in range(len(requests) + 1)]

    def wrong_element(self, requests, kind):
        kinds = {
            "number": 3,
            "text": "text",
            "tensor": tensor(),
            "error": pb_utils.TritonError("bare"),
            "list": [good()],
        }
        return [kinds[kind]]

    def none_inside(self, requests):
        return [None for _ in requests]

    def error(self, requests, code):
        error = pb_utils.TritonError(f"a model says {code}", getattr(pb_utils.TritonError, code))
        return [pb_utils.InferenceResponse([], error)]

    def error_without_code(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("without a code"))]

    def error_without_text(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError(""))]

    def error_unicode(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("„zu groß“ ✓"))]

    def error_with_outputs(self, requests):
        return [pb_utils.InferenceResponse([tensor()], pb_utils.TritonError("with outputs"))]

    def missing_output(self, requests):
        return [pb_utils.InferenceResponse([tensor()])]

    def no_outputs(self, requests):
        return [pb_utils.InferenceResponse([])]

    def extra_output(self, requests):
        return [
            pb_utils.InferenceResponse([tensor(), tensor("MORE", [7], np.int32), tensor("EXTRA")])
        ]

    def twice(self, requests):
        return [pb_utils.InferenceResponse([tensor(), tensor(), tensor("MORE", [7], np.int32)])]

    def wrong_type(self, requests):
        return [
            pb_utils.InferenceResponse([tensor(kind=np.float64), tensor("MORE", [7], np.int32)])
        ]

    def wrong_shape(self, requests):
        return [
            pb_utils.InferenceResponse(
                [tensor(values=[1.0, 2.0, 3.0]), tensor("MORE", [7], np.int32)]
            )
        ]

    def empty_output(self, requests):
        return [pb_utils.InferenceResponse([tensor(), tensor("MORE", [], np.int32)])]

    def bad_object(self, requests, kind):
        make = {
            "tensor_without_name": lambda: tensor(""),
            "tensor_of_list": lambda: pb_utils.Tensor("OUT", [1.0, 2.0]),
            "tensor_of_none": lambda: pb_utils.Tensor("OUT", None),
            "tensor_of_complex": lambda: tensor(kind=np.complex64),
            "tensor_of_dates": lambda: pb_utils.Tensor(
                "OUT", np.array(["2020-01-01"], "datetime64[D]")
            ),
            "tensor_of_longdouble": lambda: tensor(kind=np.longdouble),
            "tensor_of_structs": lambda: pb_utils.Tensor("OUT", np.zeros(2, [("a", "i4")])),
            "tensor_without_array": lambda: pb_utils.Tensor("OUT"),
            "tensor_named_by_number": lambda: pb_utils.Tensor(3, np.zeros(2, np.float32)),
            "response_of_none": lambda: pb_utils.InferenceResponse(None),
            "response_of_tensor": lambda: pb_utils.InferenceResponse(tensor()),
            "response_of_numbers": lambda: pb_utils.InferenceResponse([1, 2]),
            "response_with_text": lambda: pb_utils.InferenceResponse([], "text"),
            "response_unknown_key": lambda: pb_utils.InferenceResponse([], oops=1),
            "error_of_none": lambda: pb_utils.TritonError(None),
            "error_of_number": lambda: pb_utils.TritonError("text", 3),
            "error_without_arguments": pb_utils.TritonError,
            "request_without_arguments": pb_utils.InferenceRequest,
        }
        return [make[kind]()]
