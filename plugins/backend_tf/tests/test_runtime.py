from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tritonpy_backend_tf.runtime import has_cuda, tensorflow

OWN = ("TF_CPP_MIN_LOG_LEVEL", "TF_XLA_FLAGS", "TF_OVERRIDE_GLOBAL_THREADPOOL", "KERAS_BACKEND")


def python(code, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in OWN}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**kept, **environment}
    )


def test_tensorflow_is_imported_without_a_word_and_its_log_is_the_servers():
    code = """
import logging
from tritonpy_backend_tf.runtime import tensorflow
seen = []
class Seen(logging.Handler):
    def emit(self, record): seen.append((record.levelname, record.getMessage()))
logging.getLogger("tritonpy").addHandler(Seen())
logger = tensorflow().get_logger()
logger.warning("how programs are written")
logger.error("something %s", "broke")
assert seen == [("ERROR", "something broke")], seen
assert tensorflow() is tensorflow()
"""
    done = python(code)
    assert (done.stdout, done.stderr) == ("", "")


def test_who_asks_for_the_messages_of_tensorflow_gets_them():
    code = (
        "from tritonpy_backend_tf.runtime import tensorflow; import os; tensorflow(); print(os.environ['TF_XLA_FLAGS'])"
    )
    done = python(code, TF_CPP_MIN_LOG_LEVEL="0", TF_ENABLE_ONEDNN_OPTS="1", TF_XLA_FLAGS="--tf_xla_min_cluster_size=2")
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
from tritonpy_backend_tf.runtime import tensorflow
try: tensorflow()
except Unavailable as error: print(error)
"""
    assert python(code).stdout.strip() == (
        "TensorFlow cannot be imported (No module named 'tensorflow'): pip install tensorflow, or tensorflow-cpu where there is no GPU"
    )


@pytest.mark.parametrize("asked", range(2))
def test_whether_tensorflow_can_use_gpus_is_what_it_says_itself(asked):
    assert has_cuda() is tensorflow().test.is_built_with_cuda()
