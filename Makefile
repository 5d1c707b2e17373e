# Short names for the commands of README.md and CONTRIBUTING.md.
PYTHON ?= $(shell command -v python3.11 || echo python3)
PLUGINS ?= onnx
BIN = .test-venv/default/bin

serve:
	$(PYTHON) -m venv .venv && .venv/bin/pip install -q ./core ./plugins/backend_onnx && .venv/bin/tritonpy serve --config examples/server.yaml

install:  # make install PLUGINS="torch python"
	$(PYTHON) tools/install.py $(PLUGINS)

release:
	$(PYTHON) tools/release.py --compiled

test:
	$(PYTHON) tests/run.py

lint:
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/python tools/checks.py contracts

types:
	$(BIN)/python tools/checks.py types

bench:
	$(BIN)/python -m bench.compare

.PHONY: serve install release test lint types bench
