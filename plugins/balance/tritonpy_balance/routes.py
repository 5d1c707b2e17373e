"""Which servers a call may go to, and how often it may be repeated: a pure function of their state.

Calls of a model that only some servers have ready go to those. Calls of a model that serves
sequences go to the server that its sequence belongs to, and are never repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from tritonpy_balance.options import BalanceOptions, ServerAddress
from tritonpy_balance.servers import ServerStatus

SERVICE = "/inference.GRPCInferenceService/"
MODEL_HEADER, SEQUENCE_HEADER = "x-model", "x-sequence-id"
EXTRACTION = "envoy.filters.http.grpc_field_extraction"
_GRPC = {"name": "content-type", "string_match": {"prefix": "application/grpc"}}
_READ_ONLY_POSTS = ("/v2/repository/index",)
_CHANGES = (
    "/v2/repository", "/v2/systemsharedmemory", "/v2/cudasharedmemory", "/v2/logging", "/v2/trace",
)  # fmt: skip
_GRPC_CHANGES = (
    "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister",
    "LogSettings", "TraceSetting",
)  # fmt: skip
# A dead server has no calls in flight, so that the choice of the least busy one prefers it.
_HOST_ATTEMPTS = 50
_REFUSAL = (
    '{"error":"the load balancer passes on no calls that change a server: send them to each '
    'server, or start it with --management"}'
)


class ServerPool(msgspec.Struct, frozen=True, order=True):
    """Servers that share calls; `sticky`: by sequence.

    Its clusters are `http-NAME` and `grpc-NAME`.
    """

    backends: tuple[ServerAddress, ...]
    sticky: bool = False
    is_default: bool = False

    @property
    def name(self) -> str:
        """A short name, which stays the same for the same servers."""
        if self.is_default:
            return "all"
        text = " ".join(backend.name for backend in self.backends)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        return f"{'sequences' if self.sticky else 'some'}-{digest}"


class ModelRoutes(msgspec.Struct, frozen=True):
    """The pools, of which the first has every server, and the models with a pool of their own."""

    pools: tuple[ServerPool, ...]
    models: tuple[tuple[str, ServerPool], ...]


def make_table(states: Sequence[ServerStatus]) -> ModelRoutes:
    """Return where the calls of each model go."""
    everything = ServerPool(tuple(state.backend for state in states), is_default=True)
    ready = [state for state in states if state.ready]
    listed = [state for state in ready if state.models is not None]
    names = sorted({name for state in listed for name in state.models or ()})
    models = []
    for name in names:
        holders = [each for each in ready if each.models is None or name in each.models]
        sticky = any(name in each.sequences for each in holders)
        if sticky or len(holders) < len(ready):
            # a sticky pool has the unready servers, too: their sequences stay theirs
            chosen = states if sticky and len(holders) == len(ready) else holders
            models.append((name, ServerPool(tuple(each.backend for each in chosen), sticky)))
    own = sorted({pool for _, pool in models})
    return ModelRoutes((everything, *own), tuple(models))


def route_configuration(table: ModelRoutes, options: BalanceOptions) -> dict[str, Any]:
    """Return Envoy's route configuration for a table."""
    default = table.pools[0]
    routes = [] if options.management else _refusals()
    for name, pool in table.models:
        routes += _model_routes(name, pool, options)
    extract = bool(table.models) and options.grpc_model_routes
    routes += [
        _route({"path": f"{SERVICE}ModelStreamInfer"}, f"grpc-{default.name}", _unsafe(options)),
        _route(
            {"path": f"{SERVICE}ModelInfer"}, f"grpc-{default.name}", _repeatable(options), extract
        ),
        _route({"prefix": "/", "headers": [_GRPC]}, f"grpc-{default.name}", _safe(options)),
        _route(
            {"prefix": "/", "headers": [_method("GET")]}, f"http-{default.name}", _safe(options)
        ),
        _route({"prefix": "/v2/models/"}, f"http-{default.name}", _repeatable(options)),
        _route({"prefix": "/v1/"}, f"http-{default.name}", _repeatable(options)),
        _route({"prefix": "/"}, f"http-{default.name}", _unsafe(options)),
    ]
    host = {
        "name": "servers",
        "domains": ["*"],
        "routes": routes,
        "request_body_buffer_limit": options.retry_buffer,
    }
    if options.certificate and options.http3:
        value = f'h3=":{options.port}"; ma=86400'
        host["response_headers_to_add"] = [{"header": {"key": "alt-svc", "value": value}}]
    return {"name": "servers", "virtual_hosts": [host], "validate_clusters": False}


def _model_routes(name: str, pool: ServerPool, options: BalanceOptions) -> list[dict[str, Any]]:
    retries = None if pool.sticky else _repeatable(options)
    header = {"name": MODEL_HEADER, "string_match": {"exact": name}}
    path = {"path_separated_prefix": f"/v2/models/{quote(name, safe='')}"}
    return [
        _route({"prefix": "/", "headers": [header, _GRPC]}, f"grpc-{pool.name}", retries),
        _route(path, f"http-{pool.name}", retries),
        _route({"prefix": "/", "headers": [header]}, f"http-{pool.name}", retries),
    ]


def _refusals() -> list[dict[str, Any]]:
    response = {"status": 403, "body": {"inline_string": _REFUSAL}}
    json_type = [{"header": {"key": "content-type", "value": "application/json"}}]
    posts = [_method("POST")]
    allowed = [{"match": {"path": path, "headers": posts}} for path in _READ_ONLY_POSTS]
    for each in allowed:
        each["route"] = {"cluster": "http-all", "timeout": "0s"}
    refused: list[dict[str, Any]] = [
        {"path_separated_prefix": each, "headers": posts} for each in _CHANGES
    ]
    refused += [
        {"safe_regex": {"regex": "/v2/models/[^/]+/trace/setting"}, "headers": posts},
        *({"path": f"{SERVICE}{each}"} for each in _GRPC_CHANGES),
    ]
    return [
        *allowed,
        *(
            {"match": match, "direct_response": response, "response_headers_to_add": json_type}
            for match in refused
        ),
    ]


def _route(
    match: dict[str, Any],
    cluster: str,
    retries: dict[str, Any] | None,
    extract: bool = False,
) -> dict[str, Any]:
    action: dict[str, Any] = {
        "cluster": cluster,
        "timeout": "0s",
        "hash_policy": [
            {"header": {"header_name": SEQUENCE_HEADER}, "terminal": True},
            {"connection_properties": {"source_ip": True}},
        ],
    }
    if retries is not None:
        action["retry_policy"] = retries
    route: dict[str, Any] = {"match": match, "route": action}
    if not extract:
        route["typed_per_filter_config"] = {
            EXTRACTION: {
                "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
                "disabled": True,
            }
        }
    return route


def _method(name: str) -> dict[str, Any]:
    return {"name": ":method", "string_match": {"exact": name}}


def _repeatable(options: BalanceOptions) -> dict[str, Any]:
    """Inference without side effects: repeated on another server whatever the fault."""
    return _retries(
        options,
        "connect-failure,refused-stream,reset,retriable-status-codes,unavailable,resource-exhausted",
    ) | {"retriable_status_codes": [503]}


def _safe(options: BalanceOptions) -> dict[str, Any]:
    """Calls that only read."""
    return _retries(options, "connect-failure,refused-stream,reset,gateway-error,unavailable")


def _unsafe(options: BalanceOptions) -> dict[str, Any]:
    """Calls that a server may have begun: repeated only if it surely did not."""
    return _retries(options, "connect-failure,refused-stream")


def _retries(options: BalanceOptions, when: str) -> dict[str, Any]:
    return {
        "retry_on": when,
        "num_retries": options.retries,
        "retry_host_predicate": [
            {
                "name": "envoy.retry_host_predicates.previous_hosts",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3."
                    "PreviousHostsPredicate"
                },
            }
        ],
        "host_selection_retry_max_attempts": _HOST_ATTEMPTS,
        "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.1s"},
    }
