"""The papers' equations in NumPy, written without a look at the layers they check."""

import math
from functools import partial

import numpy as np

_erf = np.vectorize(math.erf)


def layer_norm(x, weights, name, epsilon):
    """Normalizes the last axis; `weights` holds `{name}/gamma` and `{name}/beta`."""
    variance = x.var(axis=-1, keepdims=True)
    normalized = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(variance + epsilon)
    return normalized * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def dense(x, weights, name):
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def feed_forward(x, weights):
    return dense(gelu(dense(x, weights, "expand")), weights, "shrink")


def gelu(x):
    """x times the probability that a standard normal variable is below x."""
    return x * 0.5 * (1.0 + _erf(x / math.sqrt(2.0)))


def softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention(query, key, value):
    """softmax(q k^T / sqrt(d)) v over the last two axes, tokens and channels."""
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    return softmax(scores) @ value


def patch_embedding(images, weights, patch_size):
    """Patches row by row, each flattened and multiplied by the kernel."""
    kernel = weights["projection/kernel"].reshape(-1, weights["projection/kernel"].shape[-1])
    height, width = images.shape[1:3]
    tokens = [
        images[:, top : top + patch_size, left : left + patch_size].reshape(len(images), -1)
        for top in range(0, height, patch_size)
        for left in range(0, width, patch_size)
    ]
    return np.stack(tokens, axis=1) @ kernel + weights["projection/bias"]


def spatial_gating(z, weights, gating, summand=0.0):
    """s(Z) of the gMLP paper, section 2.1 and table 3."""
    z1, z2 = np.split(z, 2, axis=-1) if gating == "split" else (z, z)
    spatial = weights["spatial/kernel"].T
    normalized = layer_norm(z2, weights, "norm", epsilon=1e-5)
    projected = np.einsum("ij,bjc->bic", spatial, normalized)
    projected = projected + weights["spatial/bias"][:, None] + summand
    return {
        "linear": projected,
        "additive": z1 + projected,
        "multiplicative": z1 * projected,
        "split": z1 * projected,
    }[gating]


def tiny_attention(x, weights):
    query, key, value = np.split(dense(x, weights, "qkv"), 3, axis=-1)
    return dense(attention(query, key, value), weights, "projection")


def self_attention(x, weights):
    """Multi-head attention; kernels are (dim, heads, head size)."""
    query, key, value = (
        np.einsum("bnd,dhk->bhnk", x, weights[f"attention/{name}/kernel"])
        + weights[f"attention/{name}/bias"][:, None]
        for name in ("query", "key", "value")
    )
    kernel = weights["attention/attention_output/kernel"]
    mixed = np.einsum("bhnk,hkd->bnd", attention(query, key, value), kernel)
    return mixed + weights["attention/attention_output/bias"]


def token_mlp(x, weights):
    """The same network for each channel, along the tokens."""
    return np.swapaxes(feed_forward(np.swapaxes(x, 1, 2), weights), 1, 2)


def affine(x, weights, name):
    return weights[f"{name}/alpha"] * x + weights[f"{name}/beta"]


def external_attention(x, weights, num_heads):
    """Equations 5 to 10 of the external attention paper, head by head."""
    features = np.split(dense(x, weights, "query"), num_heads, axis=-1)
    outputs = []
    for head in features:
        scores = head @ weights["keys/kernel"]  # (batch, tokens, slots)
        over_tokens = np.swapaxes(softmax(np.swapaxes(scores, 1, 2)), 1, 2)
        share = over_tokens / (over_tokens.sum(axis=-1, keepdims=True) + 1e-9)
        outputs.append(share @ weights["values/kernel"])
    return dense(np.concatenate(outputs, axis=-1), weights, "projection")


def gmlp(x, weights, gating="split", attention=0.0):
    x = gelu(dense(x, weights, "expand"))
    if gating != "none":
        x = spatial_gating(x, part(weights, "gate"), gating, attention)
    return dense(x, weights, "shrink")


def amlp(x, weights):
    return gmlp(x, weights, attention=tiny_attention(x, part(weights, "attention")))


def over_tokens(x, weights):
    return token_mlp(x, part(weights, "token_mlp"))


def four_memories(x, weights):
    return external_attention(x, part(weights, "attention"), num_heads=4)


def linear_over_tokens(x, weights):
    """Equation 2 of the ResMLP paper, without its norm and its residual."""
    mixed = np.einsum("ij,bjc->bic", weights["spatial/kernel"].T, x)
    return weights["scale1/gamma"] * (mixed + weights["spatial/bias"][:, None])


def scaled_feed_forward(x, weights):
    return weights["scale2/gamma"] * feed_forward(x, weights)


def norm_along_tokens(x, weights, name, epsilon):
    return np.swapaxes(layer_norm(np.swapaxes(x, 1, 2), weights, name, epsilon), 1, 2)


def affine_norm(x, weights, name, epsilon):
    return affine(x, weights, name)


# The norm, its name and the mixing function of each branch.
FEED_FORWARD = (layer_norm, "norm2", feed_forward)
BLOCKS = {
    **{
        f"gmlp {gating}": [(layer_norm, "norm", partial(gmlp, gating=gating))]
        for gating in ("linear", "additive", "multiplicative", "split", "none")
    },
    "amlp": [(layer_norm, "norm", amlp)],
    "mixer": [(layer_norm, "norm1", over_tokens), FEED_FORWARD],
    "ff_only": [(layer_norm, "norm1", feed_forward), (norm_along_tokens, "norm2", over_tokens)],
    "resmlp": [
        (affine_norm, "norm1", linear_over_tokens),
        (affine_norm, "norm2", scaled_feed_forward),
    ],
    "transformer": [(layer_norm, "norm1", self_attention), FEED_FORWARD],
    "external": [(layer_norm, "norm1", four_memories), FEED_FORWARD],
}


def branches(weights, name, epsilon=1e-6):
    """Returns functions of what each branch of a block adds to its input."""
    return [
        lambda x, norm=norm, own=own, mix=mix: mix(norm(x, weights, own, epsilon), weights)
        for norm, own, mix in BLOCKS[name]
    ]


def block(x, weights, name, epsilon=1e-6, norm_placement="pre"):
    """A block of the papers; the norm after the residual is that of Transformers and BERT."""
    for norm, own, mix in BLOCKS[name]:
        if norm_placement == "pre":
            x = x + mix(norm(x, weights, own, epsilon), weights)
        else:
            x = norm(x + mix(x, weights), weights, own, epsilon)
    return x


def convolution(images, kernel, bias=0.0, stride=1):
    """A square kernel over images padded with zeros until size / stride, rounded up, is left."""
    size = kernel.shape[0]
    rows, columns = (-(-n // stride) for n in images.shape[1:3])
    padding = [(0, 0)]
    for n, out in zip(images.shape[1:3], (rows, columns), strict=True):
        total = max((out - 1) * stride + size - n, 0)
        padding.append((total // 2, total - total // 2))
    padded = np.pad(images, [*padding, (0, 0)])
    outputs = np.zeros((len(images), rows, columns, kernel.shape[-1]))
    for top in range(size):
        for left in range(size):
            window = padded[:, top:, left:][
                :, : rows * stride : stride, : columns * stride : stride
            ]
            outputs += window[:, :rows, :columns] @ kernel[top, left]
    return outputs + bias


def convolutional_stem(images, weights):
    x = convolution(images, weights["convolution_0/kernel"], weights["convolution_0/bias"], 2)
    i = 0
    while f"norm_{i}/gamma" in weights:
        x = gelu(layer_norm(x, weights, f"norm_{i}", epsilon=1e-6))
        i += 1
        kernel, bias = weights[f"convolution_{i}/kernel"], weights[f"convolution_{i}/bias"]
        x = convolution(x, kernel, bias, 2)
    return x.reshape(len(x), -1, x.shape[-1])


def residual_stem(images, weights):
    """Groups of a convolution of stride 2 and some with shortcuts; the last has neither."""
    x, group = images, 0
    while part(weights, f"norm_{group}_0"):
        halve = part(weights, f"halve_{group}")
        x = convolution(x, halve["kernel"], halve["bias"], 2)
        x, i = gelu(layer_norm(x, weights, f"norm_{group}_0", epsilon=1e-6)), 1
        while own := part(weights, f"residual_{group}_{i}"):
            step = convolution(x, own["kernel"], own["bias"])
            x = x + gelu(layer_norm(step, weights, f"norm_{group}_{i}", epsilon=1e-6))
            i += 1
        group += 1
    x = convolution(x, weights[f"halve_{group}/kernel"], weights[f"halve_{group}/bias"], 2)
    return x.reshape(len(x), -1, x.shape[-1])


def classifier(images, weights, block, patch_size):
    """Logits of pixels in [0, 255], read off the class token or, without one, the mean."""
    stem = part(weights, "stem")
    x = (images / 255 - 0.5) / 0.5
    patches = "projection/kernel" in stem
    x = patch_embedding(x, stem, patch_size) if patches else convolutional_stem(x, stem)
    for name in ("distillation_token/token", "class_token/token"):  # the class token comes first
        if name in weights:
            token = np.broadcast_to(weights[name], (len(x), 1, x.shape[-1]))
            x = np.concatenate([token, x], axis=1)
    x = x + weights.get("position/embedding", 0.0)
    i = 0
    while own := part(weights, f"block_{i}"):
        x = block(x, own)
        i += 1
    if "norm/alpha" in weights:
        x = affine(x, weights, "norm")
    else:
        x = layer_norm(x, weights, "norm", epsilon=1e-6)
    if "head_distillation/kernel" in weights:
        of_both = dense(x[:, 0], weights, "head"), dense(x[:, 1], weights, "head_distillation")
        return sum(of_both) / 2
    return dense(x[:, 0] if "class_token/token" in weights else x.mean(axis=1), weights, "head")


def part(weights, name):
    """The weights under `name/`, by the rest of their paths."""
    prefix = f"{name}/"
    return {path[len(prefix) :]: w for path, w in weights.items() if path.startswith(prefix)}
