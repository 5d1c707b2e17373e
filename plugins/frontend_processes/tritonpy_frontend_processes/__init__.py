"""Frontend processes, which serve clients for the engine's process, and the protocol between them.

The engine's process owns models, queues, workers, regions, statistics and traces. A frontend
process owns connections. They exchange frames of `tritonpy_ipc` over one Unix socket pair per
process. Both ends use an event loop; the messages of one event-loop iteration travel in one frame
and cause one wake-up.

The life cycle is that of a worker process. START carries the configuration and the addresses
(extras), a lifeline and listening sockets (descriptors). STARTED or FAILED responds to it. STOP and
STOPPED end the process. RPC frames carry infrequent calls as JSON: methods of the engine, metrics
and log lines to the engine, changes of settings to the frontend process. `kinds` lists the frames
that only these processes use:

- INFER: requests in order of arrival. Words: the number of requests, the number of these words,
  then *runs*. A run begins with five words: how many requests it has, the number of the first one,
  their model id, flags, and the number of their sequence. `received_ns` and `deadline_ns` of each
  request follow. A model id stands for a model name and version, which the extras announce once.
  Consecutive requests with the same model id and without optional fields form one run; others form
  a run of their own. Rows: the inputs. Extras: `ids`, and optional fields by index
  (`requests_frame`).
- RESPONSES: responses in order. Words: their number, then for each the number of its request,
  flags, and the model's version plus one. Rows: the outputs. Extras: errors, parameters, and names
  and ids that differ from the request's.
- CANCEL: words: numbers of requests.
- TAKEN: words: the number of a request, and how many more of its responses left the process. A
  decoupled model waits while a window (`tritonpy_ipc.windows`) of responses is unconfirmed.
- NOTES: words: the number of a traced request; extras: time stamps that the frontend noted since.

A tensor in a region of shared memory is not copied: the extras name the region instead. A tensor
whose bytes do not fit its shape is sent as bytes, so that the engine refuses it with its own text
(`irregular_tensors`).

The engine's process avoids work per request. Requests of a run with inputs in one block have the
same names, types and shapes. They are validated once and handled in one call (`Engine.infer_many`).
Inputs stay in the block that they arrived in, and outputs too if the sink `passes_on` its
responses. Tensors are created only when needed (`tritonpy_ipc.blocks`), and adjacent bytes are
copied in one piece.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontend_hosts() -> Mapping[str, str]:
    """Register the host that `frontend_processes:` in server.yaml enables."""
    return {"processes": "tritonpy_frontend_processes.remote_frontend:FrontendProcesses"}
