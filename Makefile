# Everything runs in .venv, created on first use. To start again, delete it.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
LITERT := apps/web/node_modules/.installed
PORT ?= 8000
# Images of containers often set it. Each of the many processes of the tests would then compile again
# all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo web test test-313 test-core attack record lint docs

demo: $(VENV)/.demo
	$(RUN) apps/train.py --data digits --image-size 16 --out runs/demo
	$(RUN) apps/classify.py docs/seven.png --model runs/demo --top 3

web: $(VENV)/.core $(LITERT)
	@$(RUN) apps/serve.py --port $(PORT)

# Code that computes runs on each backend, the rest on one: this on PyTorch, which compiles nothing,
# the others on TensorFlow.
ON_PYTORCH := tests/attack tests/comparison tests/inspection tests/runs tests/weights \
	$(addprefix tests/test_, benchmarks.py docstrings.py example_distillation.py readme.py records.py) \
	$(addprefix tests/apps/test_, full_disk.py own_images.py text_apps.py) \
	$(addprefix tests/analysis/test_, texts.py tokens.py) \
	$(addprefix tests/evaluation/test_, label_images.py text.py) \
	$(addprefix tests/training/test_, damaged_runs.py model_card.py) \
	$(addprefix tests/models/test_, backends.py convnet.py features.py folding.py precision.py \
	presets.py torch_convolutions.py)
ON_EACH := tests/layers tests/models/test_families.py tests/models/test_resnet.py \
	tests/models/test_language_model.py tests/objectives tests/tasks tests/training \
	tests/models/test_saved.py \
	tests/analysis/test_explanation.py
# Tests compile many small models and run each a few times: skip optimizing, cache the compilations.
XLA := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true \
	--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1 \
	--xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE"
JAX := KERAS_BACKEND=jax $(XLA) \
	JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.pytest_cache/jax JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.2
# One thread in each process, because several processes share the cores. Without restarts, because
# the rest of the tests may wait for ever after a process crashed.
PYTEST := OMP_NUM_THREADS=1 $(RUN) -m pytest --numprocesses auto --dist loadfile \
	--no-loadscope-reorder --max-worker-restart 0

test: $(VENV)/.dev lint
	@$(MAKE) --silent $(LITERT) || echo "make test: continues without LiteRT.js and the tests of the page"
	KERAS_BACKEND=tensorflow $(XLA) $(PYTEST) $(addprefix --ignore=, $(ON_PYTORCH))
	$(JAX) $(PYTEST) $(addprefix --ignore=, $(ON_PYTORCH)) $(ON_EACH)
	KERAS_BACKEND=torch $(XLA) $(PYTEST) $(ON_PYTORCH) tests/export/test_formats.py \
		tests/models/test_whole_models.py $(ON_EACH)

# A part on the newest Python, in its own environment; by another name: make test-313 PYTHON_313=PATH
PYTHON_313 ?= python3.13
VENV_313 ?= .venv-313
test-313:
	@$(MAKE) --silent test-core VENV=$(VENV_313) PYTHON=$(PYTHON_313)

# In an environment without TensorFlow and PyTorch, and with the newest JAX, which crashes with XLA's
# flags above.
CORE := $(addprefix tests/layers/test_, dense.py gmlp.py) \
	tests/models/test_saved.py \
	$(addprefix tests/utils/test_, card.py files.py)
test-core: $(VENV)/.core-tests
	$(RUN) --version
	KERAS_BACKEND=jax $(PYTEST) $(CORE)

# Some hours; a part: make attack ATTACK="images --cases 1000"
attack: $(VENV)/.dev
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(RUN) -m attack.cases $(ATTACK)

# The shortest time here to 88.5 % of CIFAR-10 with a gMLP: docs/results/record.md
RECORD := --model gmlp_residual_n4_32 --set-model depth=4 --set-model 'stem_arguments={"depth": 5}' \
	--data cifar10 --recipe standard --epochs 21 --batch-size 256 --learning-rate 0.012 \
	--set mixup=0 --set cutmix=0.5 --set mix_from=0.4 --set crop=0.0625 --set alternating_flip=true \
	--backend torch --precision mixed_bfloat16
record: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(RUN) apps/train.py $(RECORD) --out runs/record
	$(RUN) -m benchmarks.time_to_accuracy runs/record

lint: $(VENV)/.dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet --strict
	@echo 'site/ is built; to read it: $(RUN) -m http.server --directory site'

# What pip downloads for each extra, as in the README.
MB_demo := 430
MB_dev := 910
MB_docs := 95
MB_core := 57

# .venv/.EXTRA marks that an extra in pyproject.toml is installed. Python compiles what it imports;
# compiling all files would take pip nearly half of its time.
$(VENV)/.%: pyproject.toml
	@$(RUN) -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), which takes some minutes$(if $(MB_$*),: pip downloads up to $(MB_$*) MB)."
	$(RUN) -m pip install --quiet --no-compile --editable '.[$*]'
	touch $@

$(LITERT): apps/web/package.json
	@command -v npm > /dev/null || { echo "npm is missing: install Node.js, which contains it"; exit 1; }
	cd apps/web && npm install --loglevel=error
	touch $@
