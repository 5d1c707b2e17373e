from __future__ import annotations

import os
import subprocess
import sys

GREETING = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1795328847.335951   26304 port.cc:153] oneDNN custom operations are on.\n"
)
SERVER = b'I1121 09:35:00.123456 12345 file.py:12] "a line of the server"\n'
SCRIPT = """
import os, subprocess, sys
from tritonpy_backend_tf.import_messages import suppress_import_messages
with suppress_import_messages():
    os.write(2, sys.argv[1].encode())
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(); print('a child', file=sys.stderr)"], stdin=subprocess.PIPE)
os.write(2, b"afterwards\\n")
child.stdin.close()
child.wait()
import threading
for thread in threading.enumerate():
    if thread.name == "tensorflow-greeting":
        thread.join()
"""


def test_import_messages_are_dropped_and_other_output_passes():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, (GREETING + SERVER + b"Traceback\n").decode()],
        capture_output=True, check=True, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert sorted(done.stderr.splitlines()) == sorted(
        [SERVER.strip(), b"Traceback", b"afterwards", b"a child"]
    )
