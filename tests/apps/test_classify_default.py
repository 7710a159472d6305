"""apps/classify.py without a model: the included model of everyday photographs."""

import json
import os
import resource
import subprocess
import sys

import pytest
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
# The same by hand: the picture, the model and one run, without what makes it a program.
BARE = """
import sys
from pathlib import Path
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image
image = np.asarray(Image.open(sys.argv[1]).convert("RGB").resize((64, 64)))
file = "saved_models/gmlp_photo_64/model_features.tflite"
interpreter = Interpreter(model_content=Path(file).read_bytes(), num_threads=1)
interpreter.allocate_tensors()
taken = interpreter.get_input_details()[0]
interpreter.set_tensor(taken["index"], image[None].astype(taken["dtype"]))
interpreter.invoke()
"""


def test_names_a_cat_among_everyday_classes_and_the_ten_by_name(app):
    found = json.loads(app("classify", CAT, "--json", "--top", "3")[1])["predictions"]
    assert {prediction["label"] for prediction in found[:2]} == {"tabby", "egyptian_cat"}
    given = [CAT, "--json", "--model", "gmlp_conv_n4_32-cifar10"]
    assert json.loads(app("classify", *given)[1])["predictions"][0]["label"] == "cat"


@pytest.mark.filterwarnings("default::keras_gmlp.utils.errors.DataWarning")
def test_folder_names_the_pipe_that_it_leaves_out(app, tmp_path):
    (tmp_path / "cat.jpg").symlink_to(CAT)
    os.mkfifo(tmp_path / "fifo.png")
    code, printed, warned = app("classify", tmp_path, "--top", "1")
    assert (code, "cat.jpg" in printed) == (0, True)
    assert warned.startswith(f"classify: warning: {tmp_path}: files left out")
    assert warned.endswith("1 (fifo.png).\n")


def test_starts_in_half_a_second_without_keras():
    program, bare = [], []
    for _ in range(3):  # the first reads the files from the disk
        program.append(processor_seconds([COLD, str(CAT)]))
        bare.append(processor_seconds([BARE, str(CAT)]))
    # Of the processor, since other programs may run. On a slow processor a script that does the
    # same by hand takes longer, too: about two thirds of the program's time.
    assert min(program) < max(0.5, 2 * min(bare))


def processor_seconds(program):
    """Returns the processor time of a new process of Python, which has to succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", *program]
    done = subprocess.run(command, cwd=APPS.parent, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("INFO: ")]
    assert (done.returncode, complaints) == (0, [])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
