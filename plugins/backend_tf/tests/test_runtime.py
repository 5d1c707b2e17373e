from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tritonpy_backend_tf.runtime import has_cuda, import_tensorflow

OWN = ("TF_CPP_MIN_LOG_LEVEL", "TF_XLA_FLAGS", "TF_OVERRIDE_GLOBAL_THREADPOOL", "KERAS_BACKEND")


def python(code, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in OWN}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, **environment},
    )


def test_tensorflow_is_imported_silently_and_logs_to_the_servers_log():
    code = """
import logging
from tritonpy_backend_tf.runtime import import_tensorflow
seen = []
class Seen(logging.Handler):
    def emit(self, record): seen.append((record.levelname, record.getMessage()))
logging.getLogger("tritonpy").addHandler(Seen())
logger = import_tensorflow().get_logger()
logger.warning("how programs are written")
logger.error("something %s", "broke")
assert seen == [("ERROR", "something broke")], seen
assert import_tensorflow() is import_tensorflow()
"""
    done = python(code)
    assert (done.stdout, done.stderr) == ("", "")


def test_tensorflows_messages_can_be_enabled():
    code = "from tritonpy_backend_tf.runtime import import_tensorflow; import os; import_tensorflow(); print(os.environ['TF_XLA_FLAGS'])"
    done = python(
        code,
        TF_CPP_MIN_LOG_LEVEL="0",
        TF_ENABLE_ONEDNN_OPTS="1",
        TF_XLA_FLAGS="--tf_xla_min_cluster_size=2",
    )
    assert "port.cc" in done.stderr
    assert done.stdout.strip() == "--tf_xla_min_cluster_size=2 --tf_xla_cpu_global_jit"


def test_without_tensorflow_the_error_says_what_to_install():
    code = """
import sys
sys.modules["tensorflow"] = None
del sys.modules["tensorflow"]
class Nothing:
    def find_spec(self, name, *_):
        if name == "tensorflow": raise ModuleNotFoundError("No module named 'tensorflow'")
sys.meta_path.insert(0, Nothing())
from tritonpy import Unavailable
from tritonpy_backend_tf.runtime import import_tensorflow
try: import_tensorflow()
except Unavailable as error: print(error)
"""
    assert python(code).stdout.strip() == (
        "TensorFlow cannot be imported (No module named 'tensorflow'): pip install tensorflow, or tensorflow-cpu on machines without a GPU"
    )


@pytest.mark.parametrize("attempt", range(2))
def test_has_cuda_agrees_with_tensorflow(attempt):
    assert has_cuda() is import_tensorflow().test.is_built_with_cuda()
