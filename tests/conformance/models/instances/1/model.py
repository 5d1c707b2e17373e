"""Returns which instances exist, or whether they execute concurrently.

A group whose name begins with "broken" does not start.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

LATE_S = 20


class TritonPythonModel:
    def initialize(self, args):
        if args["model_instance_name"].startswith("broken"):
            raise pb_utils.TritonModelException("this instance does not start")
        self.me = [args[f"model_instance_{key}"] for key in ("name", "kind", "device_id")]
        self.count = 0

    def execute(self, requests):
        return [
            self.respond(json.loads(pb_utils.get_input_tensor_by_name(one, "IN").as_numpy()[0]))
            for one in requests
        ]

    def respond(self, action):
        self.count += 1
        names = self.meet(*action["meet"]) if "meet" in action else [self.alone(action["alone"])]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(names, dtype=object))])

    def meet(self, place, count):
        """Wait until `count` different instances are here; return their names."""
        folder = server_folder() / place
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f".{uuid.uuid4()}"
        written.write_text(" ".join([*self.me, str(self.count)]))
        written.rename(folder / written.name[1:])
        end = time.monotonic() + LATE_S
        while time.monotonic() < end:
            there = [each for each in folder.iterdir() if not each.name.startswith(".")]
            if len(there) >= count:
                return sorted(each.read_text() for each in there)
            time.sleep(0.001)
        return ["nobody else came"]

    def alone(self, place):
        """Wait briefly and return whether other instances were here meanwhile."""
        folder = server_folder() / place
        folder.mkdir(parents=True, exist_ok=True)
        mine = folder / str(uuid.uuid4())
        mine.touch()
        others = set()
        for _ in range(10):
            others |= {each for each in folder.iterdir() if each != mine}
            time.sleep(0.001)
        mine.unlink()
        return f"{len(others)} others"


def server_folder():
    """Return a folder for the instances of this server, empty at the start of an exchange.

    Two servers may read one repository.
    """
    return Path(os.environ["CONFORMANCE_MEETINGS"])
