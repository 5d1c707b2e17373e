from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tritonpy_frontend_http import tritonpy_frontends


def test_discovery_loads_no_web_framework():
    code = "import sys, tritonpy_frontend_http; print({'uvicorn', 'httptools', 'tritonpy_frontend_http.router'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_the_frontend_is_registered_by_name():
    assert tritonpy_frontends() == {"http": "tritonpy_frontend_http.frontend:HttpFrontend"}


def test_the_management_routes_need_no_web_framework():
    code = "import sys, tritonpy_frontend_http.routes; print({name.partition('.')[0] for name in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("litestar", "starlette", "polyfactory", "faker", "httpx", "rich"):
        assert f"'{name}'" not in out.stdout
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert "litestar" not in project
