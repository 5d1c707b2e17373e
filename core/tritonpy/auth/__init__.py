"""Authentication and authorization: rights, restricted APIs, forwarded headers.

Start at `authorizer`. The modules import each other directly and `tritonpy.api`; plugins import the
names below from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.authenticator import Authenticator, Principal, Verb
    from tritonpy.auth.authorizer import Authorizer, Rights, bearer_token, joined_headers
    from tritonpy.auth.header_forwarding import HeaderForwarding, compile_pattern, keep_headers
    from tritonpy.auth.refreshed_value import ChangedFile, RefreshedValue
    from tritonpy.auth.restriction import (
        ApiCategory,
        Restriction,
        RestrictionDenials,
        Restrictions,
        check_restrictions,
    )
    from tritonpy.server.factories import make_authorizer

__all__ = [
    "ApiCategory",
    "Authenticator",
    "Authorizer",
    "ChangedFile",
    "HeaderForwarding",
    "Principal",
    "RefreshedValue",
    "Restriction",
    "RestrictionDenials",
    "Restrictions",
    "Rights",
    "Verb",
    "bearer_token",
    "check_restrictions",
    "compile_pattern",
    "joined_headers",
    "keep_headers",
    "make_authorizer",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.authenticator": ("Authenticator", "Principal", "Verb"),
        "tritonpy.auth.authorizer": ("Authorizer", "Rights", "bearer_token", "joined_headers"),
        "tritonpy.auth.header_forwarding": ("HeaderForwarding", "compile_pattern", "keep_headers"),
        "tritonpy.auth.refreshed_value": ("ChangedFile", "RefreshedValue"),
        "tritonpy.server.factories": ("make_authorizer",),
        "tritonpy.auth.restriction": (
            "ApiCategory",
            "Restriction",
            "RestrictionDenials",
            "Restrictions",
            "check_restrictions",
        ),
    },
)
