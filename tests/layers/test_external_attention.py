import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp.layers import ExternalAttention

MULTI_HEAD = {"num_heads": 4, "slots": 3, "expansion": 2}
SINGLE_HEAD = {"num_heads": 1, "slots": 3, "expansion": 1}
both_forms = pytest.mark.parametrize("form", [MULTI_HEAD, SINGLE_HEAD])


def test_double_normalization_by_hand():
    layer = ExternalAttention(1, slots=2, expansion=1)
    scores = np.log([[[[1.0, 1.0]], [[3.0, 1.0]]]])  # two tokens, one head, two slots
    # Over the tokens 1/4, 3/4 and 1/2, 1/2; then over the slots.
    expected = [[[[1 / 3, 2 / 3]], [[3 / 5, 2 / 5]]]]
    np.testing.assert_allclose(to_numpy(layer.attend(scores)), expected, rtol=1e-5)


def test_heads_share_one_pair_of_memories():
    layer = ExternalAttention(**MULTI_HEAD)
    layer.build((8, 5, 6))
    assert layer.keys.kernel.shape == layer.values.kernel.shape[::-1] == (3, 3)
