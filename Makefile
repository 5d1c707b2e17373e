# Thin names for the commands of the README.
PYTHON ?= python3.11
BIN = .test-venv/default/bin

serve:
	$(PYTHON) -m venv .venv && .venv/bin/pip install -q ./core ./plugins/backend_onnx && .venv/bin/tritonpy serve --config examples/server.yaml

test:
	$(PYTHON) tests/run.py

lint:
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && PYTHONPATH=$$(echo plugins/* | tr ' ' ':') $(BIN)/lint-imports

types:
	$(BIN)/mypy

bench:
	$(BIN)/python -m bench.compare

.PHONY: serve test lint types bench
