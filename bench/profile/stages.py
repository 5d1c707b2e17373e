"""Functions that start the stages of a request, by protocol and backend."""

from __future__ import annotations

STAGES = (
    "parse",
    "validate",
    "enqueue",
    "hand-over",
    "gather",
    "run",
    "scatter",
    "answer",
    "encode",
    "write",
)
IDLE = "idle"  # a thread waits in it

_ENGINE = {
    "tritonpy.engine.local:LocalEngine.infer": "enqueue",
    "tritonpy.model.request_check:RequestCheck.check": "validate",
    "tritonpy.runners.wakeups:Wakeups._run_due": "hand-over",
    "tritonpy.model.loaded_model:LoadedModel.respond": "answer",
}
_LOCAL = {
    "tritonpy.runners.dispatcher:Dispatcher.wait_ready": "hand-over",
    "tritonpy.runners.dispatcher:Dispatcher.wait_wakeup": IDLE,
    "tritonpy.runners.dispatcher:Dispatcher.take": "hand-over",
    "tritonpy_backend_onnx.backend:gather": "gather",
    "tritonpy_backend_onnx.execution:ArrayExecution.__call__": "run",
    "tritonpy_backend_onnx.backend:scatter": "scatter",
}
_WORKERS = {
    "tritonpy_workers.instance:WorkerInstance.feed": "hand-over",
    "tritonpy_workers.executions:Executions.send": "gather",
    "tritonpy_engine_rpc.connection:Connection._flush": "hand-over",
    "tritonpy_engine_rpc.connection:Connection._readable": "scatter",
}
IN_WORKER = {
    "tritonpy_worker.ipc.channel:Channel._receive": IDLE,
    "tritonpy_worker.ipc.channel:Channel._feed": "gather",
    "tritonpy_worker.execution:Executor._execute": "run",
    "tritonpy_worker.response_frame:ResponseFrame.send": "scatter",
    "tritonpy_worker.ipc.channel:Channel._write": "hand-over",
}
_HTTP = {
    "tritonpy_http_api.protocol:InferProtocol.data_received": "parse",
    "tritonpy_types.request:LoopQueueSink._drain": "encode",
    "tritonpy_http_api.infer_cycle:InferCycle.finish": "write",
}
_GRPC = {
    "tritonpy_frontend_grpc.service:InferenceService.infer": "parse",
    "tritonpy_types.request:LoopQueueSink._drain": "answer",
    "tritonpy_frontend_grpc.infer_sink:encode_response": "encode",
    "tritonpy_frontend_grpc.service:InferenceService._end": "write",
}
PROTOCOLS = {"http": _HTTP, "grpc": _GRPC}
BACKENDS = {"onnx": _LOCAL, "python": _WORKERS}


def boundaries(protocol: str, backend: str) -> dict[str, str]:
    """Return the stage of each function that starts one in the server's process."""
    return {**PROTOCOLS[protocol], **_ENGINE, **BACKENDS[backend]}
