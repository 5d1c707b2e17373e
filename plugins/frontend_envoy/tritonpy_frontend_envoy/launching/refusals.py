"""What Envoy answers by itself, in our words, and its lines about it."""

from __future__ import annotations

import json
from typing import Any

from tritonpy_frontend_envoy.launching.envoy_log import MARK, REFUSED
from tritonpy_frontend_envoy.launching.texts import TEXTS
from tritonpy_frontend_envoy.launching.types import typed

# A path whose escapes are UTF-8: pyvoy cannot hand on another.
_TAIL = "%[89ABab][0-9A-Fa-f]"
_READABLE = (
    "(?:[^%]|%[0-7][0-9A-Fa-f]|"
    f"%[Cc][2-9A-Fa-f]{_TAIL}|%[Dd][0-9A-Fa-f]{_TAIL}|"
    f"%[Ee]0%[ABab][0-9A-Fa-f]{_TAIL}|%[Ee][1-9A-CEFa-cef](?:{_TAIL}){{2}}|%[Ee][Dd]%[89][0-9A-Fa-f]{_TAIL}|"
    f"%[Ff]0%[9ABab][0-9A-Fa-f](?:{_TAIL}){{2}}|%[Ff][1-3](?:{_TAIL}){{3}}|%[Ff]4%8[0-9A-Fa-f](?:{_TAIL}){{2}})*"
)
_PATHS = "paths"
_UNREADABLE_STATUS = 403  # what the filter that finds such a path answers; nothing else of Envoy's does
_UNREADABLE_TEXT = "The path cannot be read: its escapes are no UTF-8"


def local_replies() -> dict[str, Any]:
    """Return how Envoy's own answers look: JSON as ours."""
    mappers = [_mapper(status, status, text) for status, text in TEXTS.items()]
    return {
        "mappers": [*mappers, _mapper(_UNREADABLE_STATUS, 400, _UNREADABLE_TEXT)],
        "body_format": _body("%LOCAL_REPLY_BODY%"),
    }


def path_filter() -> dict[str, Any]:
    """Return the filter that refuses paths that cannot be handed on: only a route puts it to work, since it costs 1.5 us of each request."""
    return {"name": _PATHS, "disabled": True, "typed_config": typed("filters.http.rbac.v3.RBAC")}


def routes() -> list[dict[str, Any]]:
    """Return the routes: one, of paths with escapes, at which `path_filter` looks. All others need none, as one application answers everything."""
    readable = {"url_path": {"path": {"safe_regex": {"regex": _READABLE}}}}
    policy = {"permissions": [{"not_rule": readable}], "principals": [{"any": True}]}
    rules = {"action": "DENY", "policies": {"unreadable": policy}}
    return [
        {
            "match": {"prefix": "", "headers": [{"name": ":path", "string_match": {"contains": "%"}}]},
            "non_forwarding_action": {},
            "typed_per_filter_config": {_PATHS: typed("filters.http.rbac.v3.RBACPerRoute", rbac={"rules": rules})},
        }
    ]


def refusal_lines() -> dict[str, Any]:
    """Return the log of what Envoy refused: each line is one that `EnvoyLog` reads. It is asked of every request, and looks at the status first."""
    failed = {"default_value": 400, "runtime_key": "tritonpy.refused"}
    # what the server inside answers has no such details
    by_envoy = typed("access_loggers.filters.cel.v3.ExpressionFilter", expression="size(response.code_details) > 0")
    filters = [
        {"status_code_filter": {"comparison": {"op": "GE", "value": failed}}},
        {"extension_filter": {"name": "details", "typed_config": by_envoy}},
    ]
    line = f"{MARK}{REFUSED}|%RESPONSE_CODE%|%DOWNSTREAM_REMOTE_ADDRESS%|%RESPONSE_CODE_DETAILS%\n"
    form = {"text_format_source": {"inline_string": line}}
    return {
        "name": "refused",
        "filter": {"and_filter": {"filters": filters}},
        "typed_config": typed("access_loggers.stream.v3.StderrAccessLog", log_format=form),
    }


def _mapper(status: int, new_status: int, text: str) -> dict[str, Any]:
    value = {"default_value": status, "runtime_key": f"tritonpy.{status}"}
    return {
        "filter": {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}},
        "status_code": new_status,
        "body_format_override": _body(text),
    }


def _body(text: str) -> dict[str, Any]:
    body = json.dumps({"error": text}, separators=(",", ":"))
    return {"text_format_source": {"inline_string": body}, "content_type": "application/json"}
