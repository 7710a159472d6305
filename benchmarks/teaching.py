"""How well the page's tab Teach separates photographs.

FOLDER has a folder of photographs for each class, or those in train/ and test/. For each pair of
classes it opens the page in Chromium, teaches it ten photographs of each class, and classifies the
others. Prints the accuracy of each pair.
"""

import argparse
import itertools
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.folder import list_splits
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, FEATURES_FIRST, find_model

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from web_page import BYTES, as_text, open_browser, open_page, serve_models

TAUGHT = 10  # photographs of a class
TRIED = 50
CLASSIFY = f"""async (files) => {{
  {BYTES}
  const {{ decode }} = await import("./decode.js");
  const {{ PARTS }} = await import("./head.js");
  const {{ loadModel }} = await import("./model.js");
  globalThis.taught ??= await loadModel({{ name: "model", url: "/models/model.tflite" }});
  const rows = [];
  for (const file of files) {{
    const image = await decode(new Blob([bytes(file)]));
    rows.push((await taught.viewFeatures(image, PARTS)).map((view) => Array.from(view)));
  }}
  return rows;
}}"""
LEARNED = """() => new Promise((resolve) => {
  const original = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    URL.createObjectURL = original;
    resolve(blob.text());
    return original(blob);
  };
  document.getElementById("download").click();
})"""


def measure_pairs(root, model=DEFAULT_BACKBONE, seed=0):
    """Teaches the page each pair of classes; yields their names and the accuracy."""
    chosen = draw_photos(root, seed)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(find_model(model, FEATURES_FIRST)[0], Path(folder, "model.tflite"))
        with (
            serve_models(Path(folder)) as address,
            open_browser() as browser,
            open_page(browser, address) as page,
        ):
            tried = {label: features_of(page, files[TAUGHT:]) for label, files in chosen.items()}
            for pair in itertools.combinations(chosen, 2):
                weights, bias = teach(page, {label: chosen[label][:TAUGHT] for label in pair})
                right = [
                    (tried[label] @ weights.T + bias).argmax(-1) == number
                    for number, label in enumerate(pair)
                ]
                yield pair, float(np.mean(np.concatenate(right)))


def draw_photos(root, seed):
    """Returns the paths of photographs by class, first those to teach."""
    labels, splits, _ = list_splits(Path(root))
    chosen = {label: [] for label in labels}
    for path, index in sorted(itertools.chain(*splits.values())):
        chosen[labels[index]].append(Path(os.fsdecode(path)))
    for label, paths in chosen.items():
        if len(paths) <= TAUGHT:
            raise ValueError(f"{label} has {len(paths)} photographs; expected more than {TAUGHT}.")
        random.Random(seed).shuffle(paths)
    return {label: paths[: TAUGHT + TRIED] for label, paths in chosen.items()}


def features_of(page, files):
    """Returns the mean of the features of each photograph and of its parts."""
    views = page.evaluate(CLASSIFY, [as_text(file.read_bytes()) for file in files])
    return np.mean(views, axis=1)


def teach(page, classes):
    """Teaches as a visitor does; returns the weights and the bias that the page learned."""
    page.reload()
    page.click("#tab-teach")
    for number, (label, files) in enumerate(classes.items()):
        page.get_by_label("Name").nth(number).fill(label)
        page.locator(".files").nth(number).set_input_files(list(map(str, files)))
    page.click("#learn")
    page.get_by_text(f"Knows {', '.join(classes)}.").wait_for(timeout=600_000)  # of a busy machine
    assert page.inner_text("#teach-problem") == ""
    head = page.evaluate(f"async () => JSON.parse(await ({LEARNED})())")
    return np.array(head["weights"]), np.array(head["bias"])


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--model", default=DEFAULT_BACKBONE)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    accuracies = []
    for pair, accuracy in measure_pairs(options.folder, options.model, options.seed):
        accuracies.append(accuracy)
        print(f"{100 * accuracy:6.2f} %  {' and '.join(pair)}", flush=True)
    print(f"{100 * np.mean(accuracies):6.2f} %  mean, {100 * min(accuracies):.2f} % for the worst")
    return 0


if __name__ == "__main__":
    sys.exit(main())
