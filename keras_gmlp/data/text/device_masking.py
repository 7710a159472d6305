"""Masked windows made on the device, inside the compiled training step (JAX)."""

import numpy as np

from keras_gmlp.data.text.masking import MASKED, RANDOM, SHORTEST, most_masks, ordinary_tokens


def device_windows(corpus, length):
    """Returns the tokens of all windows, uint16 `(windows, length - 2)`, and their sizes, int32.

    Args:
        corpus: A `Corpus`.
        length: Tokens in a window, `[CLS]` and `[SEP]` included.
    """
    windows = corpus.windows(length)
    tokens = corpus.tokens.take(windows[:, :1] + np.arange(length - 2), mode="clip")
    return tokens, (windows[:, 1] - windows[:, 0]).astype("int32")


def make_device_masker(corpus, length, rate, cut):
    """Returns a function that masks windows, for `training.device_loop.make_device_class`.

    It draws as `masked_windows` does, with other random numbers. The draws of a window depend on
    the epoch's key and its position in the epoch alone.

    Args:
        corpus: A `Corpus`.
        length: Tokens in a window.
        rate: Share of a window's ordinary tokens to choose.
        cut: Share of the windows to cut to a random length.

    Returns:
        A function of the epoch's key, tokens `(batch, length - 2)`, sizes `(batch,)`, the position
        of the first window in the epoch and two flags that it ignores; it returns inputs, targets
        and weights, as `masked_windows`.
    """
    import jax
    import jax.numpy as jnp

    pad, _, start, end, mask = corpus.info["special_ids"]
    ordinary = ordinary_tokens(corpus)
    vocabulary = np.flatnonzero(ordinary).astype("int32")
    most = most_masks(length, rate)
    places = np.arange(length)

    def mask_window(key, tokens, size):
        keys = jax.random.split(key, 7)
        shorter = jax.random.randint(keys[0], (), SHORTEST, max(length, SHORTEST + 1)) - 2
        shorter = jnp.minimum(size, shorter)
        size = jnp.where(jax.random.uniform(keys[1]) < cut, shorter, size)
        inside = (places >= 1) & (places <= size)
        ids = jnp.where(inside, jnp.pad(tokens.astype("int32"), 1), pad)
        ends = places == size + 1  # a window that ends with a paragraph has its [SEP] already
        ids = jnp.where(ends & (ids[size] != end), end, ids).at[0].set(start)
        eligible = jnp.asarray(ordinary)[ids] & inside
        count = eligible.sum()
        wanted = jnp.floor(rate * count + jax.random.uniform(keys[2])).astype("int32")
        wanted = jnp.minimum(jnp.maximum(wanted, 1), jnp.minimum(count, most))
        order = jnp.where(eligible, jax.random.uniform(keys[3], (length,)), 2.0)
        _, positions = jax.lax.top_k(-order, most)
        used = jnp.arange(most) < wanted
        positions = jnp.where(used, positions, 0)
        targets = ids[positions]
        draw = jax.random.uniform(keys[4], (most,))
        drawn = jax.random.randint(keys[5], (most,), 0, len(vocabulary))
        other = jnp.asarray(vocabulary)[drawn]
        new = jnp.where(draw < MASKED, mask, jnp.where(draw < MASKED + RANDOM, other, targets))
        # An unused place points at [CLS], the token of position 0, and writes it back.
        ids = ids.at[positions].set(jnp.where(used, new, targets))
        return ids, positions, jnp.where(used, targets, 0), used.astype("float32")

    def augment(key, tokens, sizes, position, mixing, odd=False):
        numbers = position + jnp.arange(len(sizes))
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)
        ids, positions, targets, weights = jax.vmap(mask_window)(keys, tokens, sizes)
        return {"token_ids": ids, "mask_positions": positions}, targets, weights

    return augment
