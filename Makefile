# Everything runs in .venv, made here on first use; delete it to start afresh.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
LITERT := apps/web/node_modules/.installed
PORT ?= 8000

.PHONY: demo web test lint

demo: $(VENV)/.installed
	$(RUN) apps/train.py --data digits --image-size 16 --out runs/demo
	$(RUN) apps/classify.py docs/seven.png --model runs/demo --top 3

web: $(VENV)/.installed $(LITERT)
	@$(RUN) apps/serve.py --port $(PORT)

# What computes runs on each backend, the rest on one.
ON_EACH := tests/layers tests/models/test_families.py tests/models/test_resnet.py tests/test_losses.py \
	tests/training tests/analysis/test_tokens.py
# Tests compile many small models, some of them alike, and run each a few times.
JAX := KERAS_BACKEND=jax \
	JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.pytest_cache/jax JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.2 \
	XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
# One thread to a process: theirs would wait for one another.
PYTEST := OMP_NUM_THREADS=1 $(RUN) -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test: $(VENV)/.installed lint
	@$(MAKE) --silent $(LITERT) || echo "make test: goes on without LiteRT.js and the page's tests"
	KERAS_BACKEND=tensorflow $(PYTEST)
	$(JAX) $(PYTEST) $(ON_EACH)
	KERAS_BACKEND=torch $(PYTEST) tests/export/test_formats.py tests/models/test_whole_models.py $(ON_EACH)

lint: $(VENV)/.installed
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $@

$(LITERT): apps/web/package.json
	@command -v npm > /dev/null || { echo "npm is missing: install Node.js, which brings it"; exit 1; }
	cd apps/web && npm install --loglevel=error
	touch $@
