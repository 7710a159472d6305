"""Trainings that are killed at random moments: the same command ends as an unbroken run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from attack.kinds import SilentLossError
from attack.victim import STAGES
from keras_gmlp.models.saved import load_model
from keras_gmlp.utils.files import read_json

BACKENDS = ("tensorflow", "jax", "torch")

SIGNALS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")

RUN = (
    *("--data", "digits", "--image-size", "16", "--fraction", "0.1", "--epochs", "3"),
    *("--model", "gmlp_n4_32", "--precision", "float32", "--json", "--patch-size", "8"),
    *("--set-model", "depth=1", "--set-model", "dim=16", "--set-model", "hidden_dim=32"),
)


class Kills:
    """Each case is a run that is killed once, and started again with the same command."""

    def __init__(self, folder):
        self.folder, self.unbroken = folder, {}

    def make(self, rng, folder):
        stage, seconds = rng.choice(("start", *STAGES)), rng.choice((0.0, 0.5, 2.0)) * rng.random()
        if stage == "start":
            seconds = 10 * rng.random()
        elif stage == "export":
            seconds = 10 * seconds
        return rng.choice(BACKENDS), stage, f"{seconds:.3f}", rng.choice(SIGNALS), folder / "run"

    def check(self, case):
        backend, stage, seconds, signal, run = case
        expected = self._expected(backend)
        code, text = train(backend, run, stage, seconds, signal)
        # A signal in the last moments comes too late.
        assert code in ((0, 130) if signal == "SIGINT" else (0, -9, -15)), f"{code}: {text}"
        assert "Traceback" not in text, text
        code, text = train(backend, run, "none", "0", signal)
        if code:
            raise RuntimeError(f"the run does not go on: {text[-1000:]}")
        result = read_result(run)
        if not all(map(np.array_equal, result, expected)):
            raise SilentLossError("the run ended with other weights.")
        left = [path.name for path in run.rglob(".*") if path.is_file() and path.suffix != ".lock"]
        if left:
            raise SilentLossError(f"files are left over: {left}")

    def _expected(self, backend):
        """Returns the result of an unbroken run, which the first case of a backend trains."""
        if backend not in self.unbroken:
            code, text = train(backend, self.folder / backend, "none", "0", "SIGKILL")
            assert code == 0, text
            self.unbroken[backend] = read_result(self.folder / backend)
        return self.unbroken[backend]


class Interrupts(Kills):
    """Each case is a run on TensorFlow in which Ctrl-C is pressed once."""

    def make(self, rng, folder):
        _, *fate, _, run = super().make(rng, folder)
        return *fate, run

    def check(self, case):
        stage, seconds, run = case
        code, text = train("tensorflow", run, stage, seconds, "SIGINT")
        assert code in (0, 130), f"{code}: {text}"  # a signal in the last moments comes too late
        assert code == 0 or text.strip().startswith("train: stopped"), text
        assert text.strip().count("\n") == 0, text


def train(backend, run, *fate):
    """Trains in a child process; returns its exit code and its standard error."""
    command = [sys.executable, "-m", "attack.victim", *fate, *RUN, "--backend", backend]
    result = subprocess.run(
        [*command, "--out", run],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return result.returncode, result.stderr


def read_result(run):
    """Returns the weights of a complete run, then its test loss and the size of its `.tflite`."""
    run = Path(run)
    metrics = read_json(run / "metrics.json")
    size = (run / "model.tflite").stat().st_size
    return [
        *load_model(run / "model.keras", compile=False).get_weights(),
        np.float64([metrics["test_loss"], metrics["epochs"], size]),
    ]
