"""apps/classify.py without a model: the included model of everyday photographs."""

import json
import subprocess
import sys

from load_app import APPS

CAT = APPS.parent / "docs" / "cat.jpg"
# Runs the program, and fails if it imported what takes seconds.
COLD = """
import sys
from keras_gmlp.programs import run
code = run("classify", sys.argv[1:])
slow = [name for name in ("keras", "tensorflow", "torch", "jax") if name in sys.modules]
sys.exit(code or ", ".join(slow) or 0)
"""


def test_names_a_cat_among_everyday_classes_and_the_ten_by_name(app):
    found = json.loads(app("classify", CAT, "--json", "--top", "3")[1])["predictions"]
    assert {prediction["label"] for prediction in found[:2]} == {"tabby", "egyptian_cat"}
    given = [CAT, "--json", "--model", "gmlp_conv_n4_32-cifar10"]
    assert json.loads(app("classify", *given)[1])["predictions"][0]["label"] == "cat"


def test_starts_without_keras():
    command = [sys.executable, "-c", COLD, str(CAT)]
    done = subprocess.run(command, cwd=APPS.parent, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("INFO: ")]
    assert (done.returncode, complaints) == (0, [])
