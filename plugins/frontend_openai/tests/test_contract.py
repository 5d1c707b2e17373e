"""The contract of frontends; the toy engine's models generate no text, so a call asks for models."""

from __future__ import annotations

import tritonpy_frontend_openai
from tritonpy_frontend_openai.frontend import OpenAiFrontend
from tritonpy_testing import FrontendContract


class TestContract(FrontendContract):
    plugin_class = OpenAiFrontend
    plugin = tritonpy_frontend_openai
    name = "openai"
