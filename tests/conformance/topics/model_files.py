"""Files, log, versions and string inputs of models."""

from __future__ import annotations

from tests.conformance.exchange import Concurrent, Exchange, LogLines, get, load, topic, unload
from tests.conformance.inference import Inference, both, given, text

ONE = {"IN": given("INT32", 1)}
PIXMAP = b"P6\n2 1\n255\n" + bytes([0, 51, 102, 153, 204, 255])
WIDER = b"P6 3 2 255\n" + bytes(range(18))
TWO_INSTANCES = {"backend": "python", "instance_group": [{"count": 2, "kind": "KIND_CPU"}]}
NAMED = {
    "backend": "python",
    "instance_group": [
        {"name": "own", "kind": "KIND_CPU"},
        {"name": "other", "count": 2, "kind": "KIND_CPU"},
    ],
}


def images(*parts: bytes, rows: int | None = None) -> Inference:
    shape = (len(parts) if rows is None else rows, 1)
    return Inference("preprocessing", {"IMAGE": given("BYTES", *parts, shape=shape)})


TOPIC = topic(
    "model files",
    "local_imports other_file versions preprocessing logging",
    [
        *both("local imports", Inference("local_imports", ONE)),
        *both("another file name", Inference("other_file", ONE)),
        *(
            both(f"version {version or 'latest'}", Inference("versions", ONE, version=version))
            for version in ("", "1", "3")
        ),
        *both(
            "a version that is not there", Inference("versions", ONE, version="2"), counted=False
        ),
        Exchange(
            "metadata of versions",
            (get("/v2/models/versions"), get("/v2/models/versions/versions/1")),
        ),
        *both("an image", images(PIXMAP)),
        *both("three images", images(PIXMAP, PIXMAP, PIXMAP)),
        *both("a wider image", images(WIDER)),
        *both("images that differ", images(PIXMAP, WIDER)),
        *both("no image", images(b"GIF89a 1 1 255 x")),
        *both("an empty image", images(b"")),
        *both("five images", images(*([PIXMAP] * 5)), counted=False),
        Exchange(
            "the log",
            (Inference("logging", {"TEXT": text("marked")}).grpc(), LogLines("marked ", 6)),
        ),
        Exchange(
            "a log of two lines",
            (Inference("logging", {"TEXT": text("twofold\nand")}).grpc(), LogLines("twofold", 6)),
        ),
        Exchange(
            "a log of other signs",
            (
                Inference("logging", {"TEXT": text('strange ö ✓ \\ "x" \t')}).grpc(),
                LogLines("strange", 6),
            ),
        ),
        Exchange(
            "two instances",
            (
                load("versions", TWO_INSTANCES),
                LogLines("versions: instance", 2),
                get("/v2/models/versions/config"),
                unload("versions"),
            ),
        ),
        Exchange(
            "groups with names",
            (
                load("versions", NAMED),
                LogLines("versions: instance", 3),
                get("/v2/models/versions/config"),
                unload("versions"),
            ),
        ),
        Exchange("parts at once", (Concurrent((images(PIXMAP).grpc(), images(WIDER).binary())),)),
    ],
)
