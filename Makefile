# Everything runs in .venv, made here on first use; delete it to start afresh.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: demo test lint

demo: $(VENV)/.installed
	$(RUN) apps/train.py --data digits --image-size 16 --out runs/demo
	$(RUN) apps/classify.py docs/seven.png --model runs/demo --top 3

# What computes runs on each backend, the rest on one.
ON_EACH := tests/layers tests/test_vision.py tests/test_resnet.py tests/test_objective.py \
	tests/test_training.py tests/test_interpretation.py tests/test_muon.py tests/test_finetuning.py
PYTEST := $(RUN) -m pytest --numprocesses auto --dist loadfile

test: $(VENV)/.installed lint
	KERAS_BACKEND=tensorflow $(PYTEST)
	KERAS_BACKEND=jax $(PYTEST) $(ON_EACH)
	KERAS_BACKEND=torch $(PYTEST) $(ON_EACH) tests/test_export.py

lint: $(VENV)/.installed
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $@
