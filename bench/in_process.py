"""A server and its in-process client in one process, without ports.

`bench.repeated_work` controls it: `python -m bench.in_process REPOSITORY MODEL SUBJECT ROWS
IN_FLIGHT`.
"""

from __future__ import annotations

import sys

from bench.framework_work import SUBJECTS
from bench.repeated_work import serve_commands
from tritonpy.config import datatype_of
from tritonpy_testing import InferInput, InProcessClient, running_server


def main() -> None:
    """Serve MODEL, then send requests on command, IN_FLIGHT at a time."""
    repository, model, name, rows, in_flight = sys.argv[1:]
    subject = next(subject for subject in SUBJECTS if subject.name == name)
    inputs = [
        InferInput(name, list(array.shape), datatype_of(array.dtype)).set_data_from_numpy(array)
        for name, array in subject.kind.arrays(int(rows)).items()
    ]
    config = {
        "repositories": [{"url": repository}],
        "control": {"mode": "explicit", "load": [model]},
        "frontends": {"http": False, "grpc": False, "metrics": False},
    }
    output = next(iter(subject.kind.outputs))
    with running_server(config) as server:
        client = InProcessClient(server)
        serve_commands(lambda: client.infer(model, inputs).as_numpy(output), int(in_flight))


if __name__ == "__main__":
    main()
