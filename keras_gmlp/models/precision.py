"""Changes the precision of a model."""

import keras

from keras_gmlp.losses import Accuracy, CrossEntropy


def in_float32(model):
    """The same model with every layer in float32, compiled for evaluation.

    bfloat16 graphs do not convert to TFLite, and a saved model should load anywhere. Plain SGD
    keeps no state, which would triple the file; to train further, compile with another optimizer.
    """
    config = model.to_json()
    for policy in ("mixed_bfloat16", "mixed_float16"):
        config = config.replace(f'"{policy}"', '"float32"')
    clone = keras.models.model_from_json(config)
    clone.set_weights(model.get_weights())
    clone.trainable = True  # whatever was frozen
    clone.compile("sgd", loss=CrossEntropy(), metrics=[Accuracy()])
    return clone
