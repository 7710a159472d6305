"""Exports text models to TFLite files that hold their tokenizers, and checks each.

A file has fixed shapes, since runtimes in browsers reject others: one text of a fixed length, and
for a masked language model eight masks. The converter requires Keras on TensorFlow; a model of
another backend goes to a child process.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.export.formats import FORMATS, require_exportable
from keras_gmlp.inference.text import MASKS
from keras_gmlp.inference.text_opening import task_of
from keras_gmlp.models.folding import to_dense
from keras_gmlp.models.saved import load_model
from keras_gmlp.models.structure import longest_text
from keras_gmlp.utils.card import write_text_card
from keras_gmlp.utils.environment import run_on
from keras_gmlp.utils.files import atomic_write

TEXT_FORMATS = {name: FORMATS[name] for name in ("tflite", "tflite_float16", "tflite_float32")}


def export_text(model, directory, tokenizer, length, formats=None, labels=(), card=None):
    """Writes a text model to TFLite files, one per format.

    A file maps int32 `token_ids (1, length)`, and for a masked language model int32
    `mask_positions (1, 8)`, to float32 `logits`: `(1, 8, words)` of a masked language model,
    `(1, classes)` of a text classifier, `(1, 2, length)` of a span classifier.

    Args:
        model: A float32 language model, or one that `models.text.text_classifier` or
            `span_classifier` returned.
        directory: Folder for the files, created if missing.
        tokenizer: The model's `Tokenizer`. Each file holds it.
        length: Tokens in a text, special ones and padding included.
        formats: Keys of `TEXT_FORMATS`. Defaults to all.
        labels: Class names of a classifier.
        card: Further metadata for the card, a dict that JSON can hold.

    Returns:
        The paths of the files, a dict with the formats as keys.

    Raises:
        ValueError: If the model is no text model, a format is unknown, its requirements are not
            met, or the model does not fit the tokenizer, the length or the labels. One line.
        RuntimeError: If the conversion fails.
    """
    formats = list(TEXT_FORMATS if formats is None else formats)
    _check(model, tokenizer, length, formats, labels)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    order = {"length": length, "formats": formats, "labels": list(labels), "card": card}
    if keras.backend.backend() == "tensorflow":
        dense = to_dense(model, length)
        for name in formats:
            _write(name, dense, directory, tokenizer, length, labels, card)
    else:
        _hand_over(model, {**order, "directory": str(directory.resolve())}, tokenizer)
    return {name: directory / TEXT_FORMATS[name] for name in formats}


def _check(model, tokenizer, length, formats, labels):
    """Raises the `ValueError`s of `export_text` before it writes anything."""
    task = task_of(model)
    if task is None:
        raise ValueError(
            f"{model.name} is no text model; expected a language model, or a classifier on one. "
            "export.export takes image models."
        )
    if unknown := [name for name in formats if name not in TEXT_FORMATS]:
        raise ValueError(
            f"a text model cannot be exported to {', '.join(unknown)}; expected some of "
            f"{', '.join(TEXT_FORMATS)}."
        )
    wanted = task == "text_classification" and list(labels)
    require_exportable(model, formats, wanted)
    if not 0 < length <= (longest_text(model) or length):
        raise ValueError(
            f"{model.name} takes at most {longest_text(model)} tokens; received length={length}."
        )
    words = model.get_layer("token_embedding").input_dim
    if words != tokenizer.size:
        raise ValueError(
            f"{model.name} has {words} words, the tokenizer {tokenizer.size}; expected the one "
            "that the model was trained with."
        )


def _write(name, dense, directory, tokenizer, length, labels, card):
    import tensorflow as tf

    from keras_gmlp.export.tflite import convert_function

    specs = [tf.TensorSpec((1, length), tf.int32, name="token_ids")]
    task = task_of(dense)
    if task == "masked_lm":
        specs.append(tf.TensorSpec((1, MASKS), tf.int32, name="mask_positions"))

        def serve(token_ids, mask_positions):
            inputs = {"token_ids": token_ids, "mask_positions": mask_positions}
            return {"logits": dense(inputs, training=False)}

    else:

        def serve(token_ids):
            return {"logits": dense(token_ids, training=False)}

    precision = name.removeprefix("tflite").removeprefix("_") or "dynamic"
    flatbuffer = convert_function(dense, serve, specs, precision)
    with atomic_write(directory / TEXT_FORMATS[name]) as temporary:
        temporary.write_bytes(flatbuffer)
        write_text_card(temporary, task, tokenizer, labels, {**(card or {}), "length": length})


def _hand_over(model, order, tokenizer):
    """Exports in a child process, which runs this module on TensorFlow."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model.keras")
        tokenizer.save(Path(scratch) / "tokenizer.json")
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        run_on("tensorflow", "keras_gmlp.export.text", scratch)


def _main(scratch):
    scratch = Path(scratch)
    model = load_model(scratch / "model.keras", compile=False)
    order = json.loads((scratch / "order.json").read_text())
    export_text(model, tokenizer=Tokenizer.load(scratch / "tokenizer.json"), **order)


if __name__ == "__main__":
    _main(sys.argv[1])
