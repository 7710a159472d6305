# Everything runs in .venv, made here on first use; delete it to start afresh.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: demo test lint

demo: $(VENV)/.installed
	$(RUN) apps/demo.py

test: $(VENV)/.installed lint
	$(RUN) -m pytest

lint: $(VENV)/.installed
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $@
