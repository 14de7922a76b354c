# Two commands do all the set-up: `make demo` shows the main job, `make test` runs every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

AXE := $(VENV)/axe/node_modules/axe-core/axe.min.js

.PHONY: browser demo test soak lint types bench clean

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
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

test: lint types browser
	$(BIN)/pytest --numprocesses 2 --quiet

# The long attacks and faults: kills, damaged files, mutated logs, each as often as the bars say.
soak: $(VENV)/.test
	$(BIN)/pytest --numprocesses 2 --quiet -m soak

bench: $(VENV)/.test
	$(BIN)/python bench/lessons.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
