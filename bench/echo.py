"""Bare echo servers, which measure the cost of a transport alone.

HTTP: uvicorn and an application that reads the body and returns a fixed valid response of the same
size. gRPC: a handler that parses and serializes the same messages, on grpc.aio or on tritonpy's own
HTTP/2.

`python -m bench.echo http|grpc|h2 PORT add_sub|identity`
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from bench import payloads
from bench.payloads import Payload


def http(port: int, payload: Payload) -> None:
    """Serve HTTP until killed."""
    import uvicorn

    headers = [
        (b"content-type", b"application/octet-stream"),
        (b"inference-header-content-length", str(payload.response_header_length).encode()),
        (b"content-length", str(len(payload.response)).encode()),
    ]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    body = {"type": "http.response.body", "body": payload.response}

    async def app(scope, receive, send) -> None:  # noqa: ANN001 - ASGI
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
        await send(start)
        await send(body)

    uvicorn.run(
        app,
        port=port,
        lifespan="off",
        access_log=False,
        log_level="warning",
        loop="uvloop",
        http="httptools",
    )


def grpc(port: int) -> None:
    """Serve gRPC until killed."""
    import grpc as grpcio

    from tritonpy_protos import grpc_service_pb2 as pb

    async def infer(request, _context):  # noqa: ANN001, ANN202 - grpcio
        response = pb.ModelInferResponse(model_name=request.model_name, model_version="1")
        for name, tensor in zip(("OUTPUT0", "OUTPUT1"), request.inputs, strict=False):
            response.outputs.add(name=name, datatype=tensor.datatype, shape=tensor.shape)
        response.raw_output_contents.extend(request.raw_input_contents)
        return response

    async def ready(_request, _context):  # noqa: ANN001, ANN202 - grpcio
        return pb.ServerReadyResponse(ready=True)

    async def serve() -> None:
        unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        server = grpcio.aio.server(options=unlimited)
        handlers = {
            name: grpcio.unary_unary_rpc_method_handler(
                handler,
                request_deserializer=kind.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, handler, kind in (
                ("ModelInfer", infer, pb.ModelInferRequest),
                ("ServerReady", ready, pb.ServerReadyRequest),
            )
        }
        server.add_generic_rpc_handlers(
            (grpcio.method_handlers_generic_handler("inference.GRPCInferenceService", handlers),)
        )
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        await server.wait_for_termination()

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(serve())


def h2(port: int) -> None:
    """Serve gRPC on tritonpy's own HTTP/2 until killed."""
    from bench.h2_echo import serve

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(serve(port))


if __name__ == "__main__":
    kind, port, model = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if kind == "http":
        http(port, getattr(payloads, model)())
    elif kind == "h2":
        h2(port)
    else:
        grpc(port)
