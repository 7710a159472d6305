from keras_gmlp import ViT, gMLP
from keras_gmlp.evaluation.flops import count_flops

SMALL = {"dim": 8, "depth": 2, "patch_size": 4, "input_shape": (16, 16, 3), "classes": 5}


def test_flops_of_gmlp_by_hand(tmp_path):
    tokens, dim, hidden, depth = 16, 8, 24, 2
    stem = tokens * 4 * 4 * 3 * dim
    block = tokens * dim * hidden + tokens * tokens * hidden // 2 + tokens * hidden // 2 * dim
    gMLP(hidden_dim=hidden, **SMALL).save(tmp_path / "model.keras")
    assert count_flops(tmp_path / "model.keras") == 2 * (stem + depth * block + dim * 5)


def test_flops_of_attention_by_hand(tmp_path):
    patches, tokens, dim = 16, 17, 8
    stem = patches * 4 * 4 * 3 * dim
    attention = 4 * tokens * dim * dim + 2 * tokens * tokens * dim
    block = attention + 2 * tokens * dim * 4 * dim
    ViT(num_heads=2, **SMALL).save(tmp_path / "model.keras")
    assert count_flops(tmp_path / "model.keras") == 2 * (stem + 2 * block + dim * 5)
