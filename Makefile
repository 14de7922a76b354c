# Two commands do all the set-up: `make demo` shows the main job, `make test` runs every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test soak lint types bench clean

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

test: lint types
	$(BIN)/pytest --numprocesses 2 --quiet

# The long attacks and faults: kills, damaged files, mutated logs, each as often as the bars say.
soak: $(VENV)/.test
	$(BIN)/pytest --numprocesses 2 --quiet -m soak

bench: $(VENV)/.test
	$(BIN)/python bench/lessons.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
