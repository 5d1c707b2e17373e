"""Classify the digit in `digit.json` on a running server, with tritonclient over HTTP.

pip install "tritonclient[http]"
tritonpy serve --config examples/server.yaml        # in another terminal
python examples/classify_digit.py [HOST:PORT]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import tritonclient.http as triton

SHADES = " .:-=+*#%"


def main(address: str) -> None:
    """Print the digit and the two most probable classes."""
    request = json.loads((Path(__file__).parent / "digit.json").read_text(encoding="utf-8"))
    image = np.array(request["inputs"][0]["data"], np.float32).reshape(1, 64)
    for row in image.reshape(8, 8).astype(int) // 2:
        print("".join(SHADES[value] * 2 for value in row))
    client = triton.InferenceServerClient(address)
    pixels = triton.InferInput("image", [1, 64], "FP32").set_data_from_numpy(image)
    response = client.infer(
        "digits", [pixels], outputs=[triton.InferRequestedOutput("scores", class_count=2)]
    )
    for found in response.as_numpy("scores")[0]:
        score, _index, name = found.decode().split(":")
        print(f"{name}: {float(score):.4f}")
    client.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000")
