import sys

import pytest

from keras_gmlp import complexity
from keras_gmlp.complexity import flops

SMALL = {"dim": 8, "depth": 2, "hidden_dim": 24, "input_shape": (16, 16, 3), "classes": 5}


@pytest.mark.slow
def test_flops_of_gmlp_by_hand():
    tokens, dim, hidden, depth = 16, 8, 24, 2
    stem = tokens * 4 * 4 * 3 * dim
    block = tokens * dim * hidden + tokens * tokens * hidden // 2 + tokens * hidden // 2 * dim
    assert flops("gmlp_n4_32", **SMALL) == 2 * (stem + depth * block + dim * 5)


@pytest.mark.slow
def test_flops_of_attention_count():
    patches, tokens, dim = 16, 17, 8
    stem = patches * 4 * 4 * 3 * dim
    attention = 4 * tokens * dim * dim + 2 * tokens * tokens * dim
    block = attention + 2 * tokens * dim * 4 * dim
    sizes = {"dim": dim, "depth": 2, "num_heads": 2, "input_shape": (16, 16, 3), "classes": 5}
    assert flops("vit_n4_32", **sizes) == 2 * (stem + 2 * block + dim * 5)


def test_flops_where_torch_is_missing(monkeypatch):
    program = "raise ModuleNotFoundError(\"No module named 'torch'\")"
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
