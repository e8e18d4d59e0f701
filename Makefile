# Everything runs in .venv, which the first command creates and later ones reuse.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed

# Benchmark graphs that lie beside the checkout are used unless KGCF_DATA names others.
ifneq ($(wildcard ../shared/data),)
export KGCF_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test test-benchmarks test-slow format docs clean browser

help:
	@echo "make demo             set up, then complete and evaluate the embedded graph of the world"
	@echo "make test             format, lint, types, layers, tests, documented output (what CI runs)"
	@echo "make test-benchmarks  only the tests on benchmark graphs; fails if the files are not at hand"
	@echo "make test-slow        the long runs"
	@echo "make format           rewrite the sources in the project's format"
	@echo "make docs             rewrite the documented command output"
	@echo "make clean            remove the virtual environment and caches"

# pip is taken from the virtual environment, or lent by $(PYTHON) where Debian has no ensurepip.
$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m venv --without-pip --clear $(VENV)
	@echo "Installing kgcf and its development tools into $(VENV) (a few minutes, once) ..."
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'; \
	else \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet --constraint constraints.txt --editable '.[dev]'; \
	fi
	@touch $(READY)

demo: $(READY)
	@$(BIN)/kgcf demo

# The tests look at the explanation page in a browser. Where none is installed, root has one installed by apt-get.
browser:
	@if { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium, in which the tests look at the explanation page ..."; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium; } >/dev/null \
	    || echo "Chromium could not be installed: the tests of the explanation page are skipped, in CI they fail."; \
	else \
	  echo "No Chromium here: the tests of the explanation page are skipped, in CI they fail. Install the package chromium."; \
	fi

test: $(READY) browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/draw_layers.py --check
	$(BIN)/python scripts/document.py --check
	$(BIN)/pytest -m "not slow" -n 2 -rs

test-benchmarks: $(READY)
	KGCF_REQUIRE_BENCHMARKS=1 $(BIN)/pytest -m "benchmark and not slow" -n 2 -rs

test-slow: $(READY)
	$(BIN)/pytest -m slow -rs

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/python scripts/draw_layers.py
	$(BIN)/python scripts/document.py
	$(BIN)/python scripts/notebook.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
