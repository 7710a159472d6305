"""apps/classify.py without a model: the included model of everyday photographs."""

import json
import resource
import subprocess
import sys

from load_app import APPS, load_app

CAT = APPS.parent / "docs" / "cat.jpg"
# Runs the program, and fails if it imported what takes seconds.
COLD = """
import sys
from keras_gmlp.programs import run
code = run("classify", sys.argv[1:])
slow = [name for name in ("keras", "tensorflow", "torch", "jax") if name in sys.modules]
sys.exit(code or ", ".join(slow) or 0)
"""
LIBRARIES = "import ai_edge_litert.interpreter, numpy, PIL.Image"


def test_names_a_cat_among_everyday_classes_and_the_ten_by_name(capsys):
    classify = load_app("classify")
    assert classify.main([str(CAT), "--json", "--top", "3"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    labels = (APPS.parent / "saved_models/gmlp_photo_64/labels.txt").read_text().splitlines()
    assert len(labels) == 200
    assert {prediction["label"] for prediction in found} < set(labels)
    assert {prediction["label"] for prediction in found[:2]} == {"tabby", "egyptian_cat"}
    assert classify.main([str(CAT), "--json", "--model", "gmlp_conv_n4_32-cifar10"]) == 0
    assert json.loads(capsys.readouterr().out)["predictions"][0]["label"] == "cat"


def test_starts_in_half_a_second_without_keras():
    program, libraries = [], []
    for _ in range(3):  # the first reads the files from the disk
        program.append(processor_seconds([COLD, str(CAT)]))
        libraries.append(processor_seconds([LIBRARIES]))
    # Of the processor, since other programs may run. Where they slow the processor itself, the
    # libraries that the program requires take longer, too.
    assert min(program) < max(0.5, 1.75 * min(libraries))


def processor_seconds(program):
    """Returns the processor time of a new process of Python, which has to succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", *program]
    done = subprocess.run(command, cwd=APPS.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
