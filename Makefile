# Thin names for the commands of the README.
PYTHON ?= python3.11
BIN = .test-venv/default/bin

serve:
	$(PYTHON) -m venv .venv && .venv/bin/pip install -q ./core ./plugins/backend_onnx && .venv/bin/tritonpy serve --config examples/server.yaml

test:
	$(PYTHON) tests/run.py

lint:
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

types:
	$(BIN)/mypy -p tritonpy -p tritonpy_protos -p tritonpy_frontend_http -p tritonpy_frontend_grpc \
	  -p tritonpy_batching_dynamic -p tritonpy_metrics_prometheus -p tritonpy_auth_api_keys -p tritonpy_auth_jwt -p tritonpy_backend_onnx -p tritonpy_backend_python -p tritonpy_trace_otel -p tritonpy_worker

bench:
	$(BIN)/python -m bench.compare

.PHONY: serve test lint types bench
