"""HTTP paths, their methods, and server metadata."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty
from grpc_health.v1.health_pb2 import HealthCheckRequest

from tests.conformance.exchange import Exchange, Grpc, Http, get, post, topic
from tritonpy_protos import grpc_service_pb2 as pb

READ = (
    "/v2",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/identity",
    "/v2/models/identity/versions/1",
    "/v2/models/identity/ready",
    "/v2/models/identity/versions/1/ready",
    "/v2/models/identity/config",
    "/v2/models/identity/versions/1/config",
    "/v2/models/identity/stats",
    "/v2/models/stats",
)
WRITTEN = (
    "/v2/models/identity/infer",
    "/v2/models/identity/versions/1/infer",
    "/v2/repository/index",
    "/v2/repository/models/identity/load",
    "/v2/repository/models/identity/unload",
)
NO_PATHS = (
    "/",
    "/v1",
    "/v2/",
    "/v2/health",
    "/v2/health/",
    "/v2/health/live/",
    "/v2/health/alive",
    "/v2/models",
    "/v2/models/",
    "/v2/models//ready",
    "/v2/models/identity/",
    "/v2/models/identity/1",
    "/v2/models/identity/versions",
    "/v2/models/identity/versions/",
    "/v2/models/identity/versions/x",
    "/v2/models/identity/versions/-1",
    "/v2/models/identity/versions/1.0",
    "/v2/models/identity/versions/1/",
    "/v2/models/identity/versions/1/nothing",
    "/v2/models/identity/nothing",
    "/v2/models/identity/Config",
    "/v2/repository",
    "/v2/repository/models",
    "/v2/repository/models/identity",
    "/v2/repository/models/identity/reload",
    "/v2/repository/models//load",
    "/v2//health/live",
    "/V2/health/live",
    "/v2/../v2/health/live",
    "/v2/./health/live",
    "/metrics",
)
NO_METHODS = (
    "/inference.GRPCInferenceService/Nothing",
    "/inference.GRPCInferenceService/modelInfer",
    "/inference.OtherService/ModelInfer",
    "/nothing",
)
DESCRIBING = ("/v2/health/live", "/v2/models/identity", "/v2/models/identity/ready")

TOPIC = topic(
    "endpoints",
    "identity",
    [
        Exchange("server metadata", (get("/v2"),)),
        Exchange("server metadata by gRPC", (Grpc("ServerMetadata", pb.ServerMetadataRequest()),)),
        Exchange("live by gRPC", (Grpc("ServerLive", pb.ServerLiveRequest()),)),
        *(
            Exchange(
                f"health of {service or 'everything'}",
                (Grpc("Check", HealthCheckRequest(service=service)),),
            )
            for service in ("", "inference.GRPCInferenceService", "nothing")
        ),
        *(Exchange(f"no method {path}", (Grpc(path, Empty()),)) for path in NO_METHODS),
        Exchange("ready by gRPC", (Grpc("ServerReady", pb.ServerReadyRequest()),)),
        *(
            Exchange(f"GET {path}", (get(path),))
            for path in READ
            if path != "/v2" and not path.endswith("stats")
        ),
        *(Exchange(f"POST {path}", (post(path, {}),)) for path in READ),
        *(Exchange(f"GET {path}", (get(path),)) for path in WRITTEN),
        *(Exchange(f"no path {path}", (get(path), post(path, {}))) for path in NO_PATHS),
        *(
            Exchange(f"{method} {path}", (Http(path, b"", method),))
            for method in ("PUT", "DELETE", "HEAD", "PATCH", "OPTIONS")
            for path in DESCRIBING
        ),
        Exchange("a query", tuple(get(f"{path}?some=thing") for path in DESCRIBING)),
        Exchange("a query without anything", tuple(get(f"{path}?") for path in DESCRIBING)),
        Exchange("a fragment", tuple(get(f"{path}#part") for path in DESCRIBING)),
        Exchange("escaped slashes", (get("/v2%2Fhealth%2Flive"), get("/v2/models%2Fidentity"))),
        Exchange("escaped letters", (get("/v2/health/l%69ve"), get("/v2/models/%69dentity"))),
        Exchange(
            "GET with a body",
            (Http("/v2/health/live", b"{}", "GET"), Http("/v2/models/identity", b"{", "GET")),
        ),
    ],
)
