"""LiteRT.js runs both signatures of a file with features."""

import numpy as np
from colours import LABELS, colour_model
from web_page import open_browser, open_page, serve_models

from keras_gmlp import inference
from keras_gmlp.export.formats import export
from keras_gmlp.similarity import make_embedder

RUN = """async (data) => {
  const { loadModel } = await import("./model.js");
  const { Tensor } = await import("@litertjs/core");
  const model = await loadModel({ name: "model", url: "/models/model_features.tflite" });
  const logits = await model.logits({ data });
  const image = new Tensor(Float32Array.from(data), model.inputShape);
  const { features } = await model.compiled.run("serving_features", { image });
  return [Array.from(logits), Array.from(await features.data())];
}"""


def test_both_signatures_give_pythons_answers(tmp_path):
    path = export(colour_model(), tmp_path, ["features"], LABELS)["features"]
    images = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), "uint8")
    with (
        open_browser() as browser,
        serve_models(tmp_path) as address,
        open_page(browser, address) as page,
    ):
        logits, features = page.evaluate(RUN, images.ravel().tolist())
    classifier = inference.load(path)
    np.testing.assert_allclose(logits, classifier.logits(images)[0], atol=1e-4)
    np.testing.assert_allclose(features, make_embedder(classifier)(images)[0], atol=1e-4)
