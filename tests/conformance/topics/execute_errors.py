"""Failures of `execute` from a client's view."""

from __future__ import annotations

from tests.conformance.exchange import Concurrent, Exchange, topic
from tests.conformance.inference import Inference, both, given, text

CODES = (
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
)
RAISING = (
    "raises", "raises_nothing_to_say", "raises_own", "raises_deep", "raises_from_cause", "raises_in_handler", "raises_unicode", "raises_lines",
    "raises_model_exception", "raises_error_object", "raises_assertion", "raises_with_note", "raises_group", "unknown_input",
)  # fmt: skip
RETURNING = (
    "fine", "no_list:tuple", "no_list:dict", "no_list:response", "no_list:text", "no_list:number", "no_list:generator", "too_few", "too_many",
    "wrong_element:number", "wrong_element:text", "wrong_element:tensor", "wrong_element:error", "wrong_element:list",
    "error_without_code", "error_without_text", "error_unicode", "error_with_outputs",
    "missing_output", "no_outputs", "extra_output", "twice", "wrong_type", "wrong_shape", "empty_output", "not_there",
)  # fmt: skip
UNANSWERED = ("nothing", "none_inside")
OBJECTS = (
    "tensor_without_name", "tensor_of_list", "tensor_of_none", "tensor_of_complex", "tensor_of_dates", "tensor_of_longdouble", "tensor_of_structs",
    "tensor_without_array", "tensor_named_by_number", "response_of_none", "response_of_tensor", "response_of_numbers", "response_with_text",
    "response_unknown_key", "error_of_none", "error_of_number", "error_without_arguments", "request_without_arguments",
)  # fmt: skip


def trouble(what: str, **options: object) -> Inference:
    return Inference("trouble", {"WHAT": text(what)}, **options)


def in_batch(*kinds: str) -> Exchange:
    """Return an exchange whose requests are executed together, in any order."""
    steps = tuple(
        Inference(
            "trouble_batch", {"WHAT": given("BYTES", kind, shape=(1, 1))}, id=f"{kind}-{number}"
        ).grpc()
        for number, kind in enumerate(kinds)
    )
    return Exchange(
        f"in a batch: {' '.join(kinds)}", (Concurrent(steps),), {"trouble_batch": len(kinds)}
    )


TOPIC = topic(
    "execute errors",
    "trouble trouble_batch",
    [
        *(both(what, trouble(what)) for what in RAISING),
        *(both(what, trouble(what)) for what in RETURNING),
        *(both(f"code {code}", trouble(f"error:{code}")) for code in CODES),
        *(both(f"object {kind}", trouble(f"bad_object:{kind}")) for kind in OBJECTS),
        *(both(what, trouble(what, timeout_s=3), counted=False) for what in UNANSWERED),
        in_batch("fine", "fine"),
        in_batch("fine", "error"),
        in_batch("fine", "missing"),
        in_batch("fine", "extra"),
        in_batch("fine", "too_few"),
        in_batch("fine", "too_many"),
        in_batch("fine", "raises"),
        in_batch("fine", "wrong"),
    ],
)
