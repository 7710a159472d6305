"""TensorFlow and JAX under the same names, for functions that serve both.

`take` gathers along an axis within each sample, `gather` gathers samples. `apply_each` applies to
each image the function of its kind; images of further kinds stay. `map_levels` maps a channel by
the table that a function makes of its histogram.
"""

import functools
from types import SimpleNamespace


@functools.cache
def tensorflow_namespace():
    """Returns TensorFlow's functions, for tf.data."""
    import tensorflow as tf

    def take(array, index, axis):
        return tf.gather(array, index, axis=axis, batch_dims=1)

    def apply_each(functions, kinds, *arrays):
        # Each function computes its own images only, about an eighth of the batch.
        rows = tf.range(tf.shape(arrays[0])[0])
        groups = tf.dynamic_partition(rows, kinds, len(functions) + 1)
        parts = [[tf.gather(array, group) for array in arrays] for group in groups]
        changed = [function(*part) for function, part in zip(functions, parts, strict=False)]
        result = tf.dynamic_stitch(groups, [*changed, parts[-1][0]])
        return tf.ensure_shape(result, arrays[0].shape)

    def auto_contrast(images):
        import keras_cv

        return keras_cv.layers.AutoContrast((0, 255))(images)

    def map_levels(levels, make_table):
        channels = levels.shape[-1]
        rows = tf.range(tf.shape(levels)[0] * channels)
        index = levels + 256 * tf.reshape(rows, (-1, 1, 1, channels))
        counts = tf.math.bincount(tf.reshape(index, (-1,)), minlength=256 * tf.size(rows))
        table = make_table(tf.reshape(counts, (-1, 256)))
        return tf.gather(tf.reshape(table, (-1,)), index)

    return SimpleNamespace(
        **vars(tf),
        take=take,
        switch=tf.switch_case,
        mean=tf.reduce_mean,
        smallest=functools.partial(tf.reduce_min, axis=-1, keepdims=True),
        apply_each=apply_each,
        auto_contrast=auto_contrast,
        map_levels=map_levels,
    )


@functools.cache
def jax_namespace():
    """Returns JAX's functions, for training steps on the device."""
    import jax
    import jax.numpy as jnp

    def take(array, index, axis):
        return jax.vmap(functools.partial(jnp.take, axis=axis - 1, mode="clip"))(array, index)

    def apply_each(functions, kinds, images, *numbers):
        result = images
        for kind, function in enumerate(functions):
            chosen = (kinds == kind)[:, None, None, None]
            result = jnp.where(chosen, function(images, *numbers), result)
        return result

    def auto_contrast(images):
        low, high = images.min((1, 2), keepdims=True), images.max((1, 2), keepdims=True)
        stretched = (images - low) * (255.0 / jnp.where(high > low, high - low, 1.0))
        return jnp.where(high > low, stretched, images)

    def map_levels(levels, make_table):
        channels = levels.shape[-1]

        def map_one(index):
            counts = jnp.bincount(index.ravel(), length=256 * channels)
            return make_table(counts.reshape(channels, 256)).ravel()[index]

        return jax.vmap(map_one)(levels + 256 * jnp.arange(channels))

    different = {
        "cast": jnp.asarray,
        "take": take,
        "gather": functools.partial(jnp.take, axis=0),
        "switch": jax.lax.switch,
        "one_hot": jax.nn.one_hot,
        "smallest": functools.partial(jnp.min, axis=-1, keepdims=True),
        "apply_each": apply_each,
        "auto_contrast": auto_contrast,
        "map_levels": map_levels,
    }
    return SimpleNamespace(**vars(jnp) | different)
