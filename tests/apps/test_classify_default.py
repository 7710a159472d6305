"""apps/classify.py without a model: the included model of everyday photographs."""

import json
import resource
import subprocess
import sys

from load_app import APPS, load_app

CAT = APPS.parent / "docs" / "cat.jpg"
CATS = ("cat", "tabby", "persian_cat", "egyptian_cat")
# Runs the program, and fails if it imported what takes seconds.
COLD = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from classify import main
code = main(sys.argv[1:])
slow = [name for name in ("keras", "tensorflow", "torch", "jax") if name in sys.modules]
sys.exit(code or ", ".join(slow) or 0)
"""


def test_names_a_cat_among_everyday_classes(capsys):
    assert load_app("classify").main([str(CAT), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["predictions"][0]["label"]
    assert best.lower().replace(" ", "_") in CATS
    assert (
        load_app("classify").main([str(CAT), "--json", "--model", "gmlp_conv_n4_32-cifar10"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["predictions"][0]["label"] == "cat"


def test_starts_in_half_a_second_without_keras():
    seconds = []
    for _ in range(3):  # the first reads the files from the disk
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", COLD, str(APPS), str(CAT)]
        done = subprocess.run(command, cwd=APPS.parent, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.5  # of the processor, since other programs may run
