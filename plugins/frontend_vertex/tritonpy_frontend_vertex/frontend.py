"""The Vertex AI frontend."""

from __future__ import annotations

from tritonpy import Engine, StartupError
from tritonpy_frontend_vertex.dialect import VertexDialect
from tritonpy_frontend_vertex.options import VertexOptions
from tritonpy_http_api.dialect import Dialect
from tritonpy_http_api.frontend import HttpApiFrontend
from tritonpy_http_api.http_service import HttpService


class VertexFrontend(HttpApiFrontend):
    """The contract of custom containers in Vertex AI, on port 8080.

    Source: src/vertex_ai_server.cc of the Triton server, and Google's documentation of custom
    containers.
    """

    Options = VertexOptions
    options: VertexOptions
    section = "vertex"
    title = "Vertex AI"
    service_name = "Vertex AI HTTPService"
    _dialect: VertexDialect | None = None

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError without routes, and as `HttpApiFrontend.start` does."""
        if not self.options.predict_route:
            raise StartupError("API_PREDICT_ROUTE is not defined for Vertex AI endpoint")
        if not self.options.health_route:
            raise StartupError("AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint")
        self._engine = engine
        await super().start(engine)

    def make_dialect(self, engine: Engine, service: HttpService) -> Dialect:
        """Return Vertex AI's routes."""
        self._dialect = VertexDialect(service, self.options)
        return self._dialect

    async def serving(self) -> None:
        """Choose the default model. Raises StartupError if it is not loaded or not the only one."""
        names = {line.name for line in self._engine.repository_index(ready=True)}
        default = self.options.default_model
        if default and default not in names:
            raise StartupError(f"Expect the default model '{default}' is loaded")
        if not default and len(names) != 1:
            raise StartupError(
                "Expect the model repository contains only a single model if default model is not "
                f"specified. Ready models: {', '.join(sorted(names)) or 'none'}. "
                "Use --vertex-ai-default-model to choose one."
            )
        assert self._dialect is not None  # noqa: S101 - start made it
        self._dialect.default_model = default or names.pop()
        await super().serving()
