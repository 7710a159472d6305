"""Workers in processes of their own."""

import numpy as np
import pytest
from fake_worker import candidate

from keras_gmlp.benchmark import runtimes, worker
from keras_gmlp.benchmark.worker import CandidateError, Worker

PRODUCT = candidate("product-numpy", sizes=(32,))


def test_worker_is_asked_and_ended(tmp_path, monkeypatch):
    asked = Worker(PRODUCT, tmp_path)
    answer = asked.ask({"size": 32, "calls": 3, "untimed": 1})
    assert len(answer["seconds"]) == 3
    assert min(answer["seconds"]) > 0
    assert answer["peak_megabytes"] > 5
    assert 0 < asked.cold_start < 60
    asked.process.kill()
    with pytest.raises(CandidateError, match="ended by SIGKILL"):
        asked.ask({"size": 32, "calls": 3, "untimed": 1})
    asked.close()
    monkeypatch.setattr(worker, "TIMEOUT", 0.01)
    with pytest.raises(CandidateError, match="no answer within"):
        Worker(PRODUCT, tmp_path)


def test_worker_says_in_one_line_what_it_lacks(tmp_path):
    with pytest.raises(CandidateError, match=r"none\.tflite: no such model") as caught:
        Worker(candidate("tflite", path="none.tflite", shape=(8, 8, 3)), tmp_path)
    assert "\n" not in str(caught.value)


def test_worker_returns_the_logits_of_the_first_image(monkeypatch):
    monkeypatch.setattr(worker, "load", lambda settings: lambda size: lambda: np.eye(size))
    for name, logits in (("tflite", [1, 0]), ("product-numpy", None)):
        requests = [{"name": name, "first": 2}, {"size": 3, "calls": 2, "untimed": 0}]
        first, second = worker.work(iter(requests))
        assert first["logits"] == logits
        assert len(second["seconds"]) == 2


def test_variables_keep_the_user_s_flags(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    found = runtimes.variables(1, "keras-jax")
    assert found["XLA_FLAGS"] == "--mine --xla_cpu_multi_thread_eigen=false"
    assert runtimes.variables(2, "onnx")["XLA_FLAGS"] == "--mine"
    assert (found["OMP_NUM_THREADS"], found["KERAS_BACKEND"]) == ("1", "jax")
