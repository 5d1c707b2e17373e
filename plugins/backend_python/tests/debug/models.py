"""Models and requests for the debugger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..serving import write_model

CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_INT64 dims: -1 } output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
"""
DOUBLE = """
def initialize(self, args):
    print("initialized in the main thread:", threading.current_thread() is threading.main_thread())

def execute(self, requests):
    responses = []
    for request in requests:
        responses.append(self.answer(request.inputs()[0].as_numpy()))
    return responses

def answer(self, values):
    if values[0] == 7:
        breakpoint()
    if values[0] == 13:
        raise ValueError("thirteen cannot be doubled")
    while values[0] == 99:
        if not hasattr(self, "printed"):
            self.printed = print("in a loop", flush=True)
    doubled = values * 2
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", doubled)])

def finalize(self):
    print("finalized in the main thread:", threading.current_thread() is threading.main_thread())
"""


def double(
    repository: Path, name: str = "double", methods: str = DOUBLE, config: str = CONFIG
) -> Path:
    """Write a model and return its folder."""
    return write_model(repository, name, methods, config)


def request_file(folder: Path, *values: int, **more: Any) -> str:
    """Write a request and return its path."""
    body = {
        "inputs": [
            {"name": "IN", "shape": [len(values)], "datatype": "INT64", "data": list(values)}
        ],
        **more,
    }
    file = folder / f"request_{len(list(folder.iterdir()))}.json"
    file.write_text(json.dumps(body))
    return str(file)


DECOUPLED = CONFIG + "model_transaction_policy { decoupled: true }"
STREAM = """
async def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in request.inputs()[0].as_numpy():
            if number == 7:
                breakpoint()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([number]))]))
        if number == 13:
            raise ValueError("in the background")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def outputs(printed: str) -> list[Any]:
    """Return the data of each response in the printed lines."""
    return [
        json.loads(line)["outputs"][0]["data"]
        for line in printed.splitlines()
        if line.startswith('{"model_name"')
    ]
