"""What a model's file says of itself: class names, and how a picture becomes its input.

A card is two members of a zip archive: in a `.keras` file, which is one, beside what Keras reads;
behind the flatbuffer of a `.tflite` file, where runtimes do not look.
"""

import json
import zipfile


def write_card(path, labels, facts):
    """Adds a card to a `.keras` or `.tflite` file that has none.

    Args:
        path: the file.
        labels: class names in the order of the logits.
        facts: a dict that JSON can hold. `crop` and `interpolation` are those of
            `images.read_image`.
    """
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "\n".join(labels) + "\n")
        archive.writestr("card.json", json.dumps(facts))


def read_card(path):
    """The card of a file: its facts and, under `labels`, the class names; empty without a card."""
    try:
        with zipfile.ZipFile(path) as archive:
            card = json.loads(archive.read("card.json"))
            card["labels"] = archive.read("labels.txt").decode().splitlines()
            return card
    except (zipfile.BadZipFile, KeyError, ValueError):
        return {}
