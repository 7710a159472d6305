"""The examples in docstrings run and show what they claim."""

import doctest
import importlib
import re
from pathlib import Path

import keras
import pytest

import keras_gmlp

ROOT = Path(__file__).resolve().parent.parent
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "keras_gmlp").rglob("*.py"))
    if ">>>" in path.read_text()
]


class Checker(doctest.OutputChecker):
    """Accepts the shapes of TensorFlow and PyTorch where an example shows a tuple."""

    def check_output(self, want, got, optionflags):
        got = re.sub(r"(?:TensorShape|torch\.Size)\(\[(.*?)\]\)", r"(\1)", got)
        return super().check_output(want, got, optionflags)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS)
    names = {**vars(module), "keras": keras, "keras_gmlp": keras_gmlp}
    report = []
    for test in doctest.DocTestFinder().find(module, name, globs=names):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
    assert runner.tries
