"""What the blocks of a text model have learned: weights by distance, attention between tokens."""

import numpy as np
from keras import ops

from keras_gmlp.analysis.tokens import block_attention
from keras_gmlp.models.structure import NotApplicableError


def distance_filters(model):
    """Returns the weight that each gate gives to a token by its distance."""
    return {name: _by_distance(matrices) for name, matrices in _gate_matrices(model).items()}


def distance_shares(model):
    """Returns how far the distance between two tokens explains the weights of each free gate."""
    return {
        name: _explained_share(matrices)
        for name, matrices in _gate_matrices(model).items()
        if not model.get_layer(name).gate.toeplitz
    }


def _gate_matrices(model):
    """Returns the matrices `(heads, inputs, outputs)` of each gate by the name of its block."""
    gates = {layer.name: getattr(layer, "gate", None) for layer in model.layers}
    matrices = {
        name: ops.convert_to_numpy(gate.spatial.matrices())
        for name, gate in gates.items()
        if gate is not None
    }
    if not matrices:
        raise NotApplicableError(
            f"{model.name} has no block that mixes tokens by a matrix of weights; gMLP and aMLP "
            "have."
        )
    return matrices


def _explained_share(matrices):
    n = matrices.shape[-1]
    distances = np.arange(n)[:, None] - np.arange(n) + n - 1  # of input j and output i, from 0 on
    fitted = _by_distance(matrices)[:, distances]
    rest = np.square(matrices - fitted).sum()
    total = np.square(matrices - matrices.mean(axis=(1, 2), keepdims=True)).sum()
    return float(1 - rest / total) if total else 1.0


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
