import sys

import pytest

from keras_gmlp import complexity
from keras_gmlp.complexity import flops

SMALL = {"dim": 8, "depth": 2, "hidden_dim": 24, "input_shape": (16, 16, 3), "classes": 5}


@pytest.mark.slow
def test_flops_are_those_of_the_matrix_products_and_little_more():
    tokens, dim, hidden, depth = 16, 8, 24, 2
    stem = tokens * 4 * 4 * 3 * dim
    block = tokens * dim * hidden + tokens * tokens * hidden // 2 + tokens * hidden // 2 * dim
    products = 2 * (stem + depth * block + dim * 5)
    # On top: norms, GELU, gate and residuals, about 40 operations for each hidden value.
    rest = depth * tokens * hidden * 40
    assert products < flops("gmlp_n4_32", **SMALL) < products + rest


def test_flops_where_jax_is_missing(monkeypatch):
    program = "raise ModuleNotFoundError(\"No module named 'jax'\")"
    run = complexity.subprocess.run
    monkeypatch.setattr(
        complexity.subprocess,
        "run",
        lambda command, **options: run([sys.executable, "-c", program], **options),
    )
    monkeypatch.setattr(complexity.keras.backend, "backend", lambda: "tensorflow")
    assert flops("gmlp_n4_32") is None


def test_flops_of_an_unknown_preset():
    with pytest.raises(ValueError, match="Did you mean 'gmlp_n4_32'"):
        flops("gmlp_n4_23")
