from __future__ import annotations

import subprocess
import sys

from tritonpy_frontend_openai import tritonpy_frontends


def test_discovery_imports_no_web_framework():
    code = "import sys, tritonpy_frontend_openai; print({'jinja2', 'uvicorn', 'httptools'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_the_frontend_is_registered_by_name():
    assert tritonpy_frontends() == {"openai": "tritonpy_frontend_openai.frontend:OpenAiFrontend"}
