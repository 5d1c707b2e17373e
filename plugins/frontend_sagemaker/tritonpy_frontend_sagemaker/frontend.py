"""The SageMaker frontend."""

from __future__ import annotations

from tritonpy import Engine
from tritonpy_frontend_sagemaker.dialect import SageMakerDialect
from tritonpy_frontend_sagemaker.model_store import ModelStore
from tritonpy_frontend_sagemaker.options import SageMakerOptions
from tritonpy_http_api.dialect import Dialect
from tritonpy_http_api.frontend import HttpApiFrontend
from tritonpy_http_api.http_service import HttpService


class SageMakerFrontend(HttpApiFrontend):
    """The contract of containers in SageMaker, on port 8080.

    Source: src/sagemaker_server.cc of the Triton server, and Amazon's documentation of custom
    containers and of multi-model endpoints.
    """

    Options = SageMakerOptions
    options: SageMakerOptions
    section = "sagemaker"
    title = "SageMaker"
    service_name = "Sagemaker HTTPService"

    def make_dialect(self, engine: Engine, service: HttpService) -> Dialect:
        """Return SageMaker's routes."""
        options = self.options
        store = ModelStore(
            engine, options.models_folder, options.unload_timeout_s, self.context.log
        )
        return SageMakerDialect(store, service, options, self.context.log)
