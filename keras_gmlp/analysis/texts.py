"""What the blocks of a text model have learned: weights by distance, attention between tokens."""

import numpy as np
from keras import ops

from keras_gmlp.analysis.tokens import block_attention
from keras_gmlp.models.structure import NotApplicableError


def distance_filters(model):
    """Returns the weight that each gate gives to a token by its distance."""
    gates = {layer.name: getattr(layer, "gate", None) for layer in model.layers}
    filters = {
        name: _by_distance(ops.convert_to_numpy(gate.spatial.matrices()))
        for name, gate in gates.items()
        if gate is not None
    }
    if not filters:
        raise NotApplicableError(
            f"{model.name} has no block that mixes tokens by a matrix of weights; gMLP and aMLP "
            "have."
        )
    return filters


def _by_distance(matrices):
    """Maps matrices `(heads, inputs, outputs)` to the mean of each diagonal."""
    n = matrices.shape[-1]
    # Input j and output i: below the main diagonal, the input is to the right of the output.
    diagonals = [matrices.diagonal(-k, 1, 2).mean(-1) for k in range(1 - n, n)]
    return np.stack(diagonals, axis=-1)


def token_attention(model, ids):
    """Returns what the blocks with attention look at in a text."""
    (token_ids,) = [tensor for tensor in model.inputs if tensor.name == "token_ids"]
    return block_attention(model, token_ids, np.asarray(ids, "int32"), "aMLP and BERT")
