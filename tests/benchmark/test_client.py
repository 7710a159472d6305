"""Workers in processes of their own."""

import numpy as np
import pytest
from fake_worker import candidate

from keras_gmlp.benchmark import client, runtimes, worker
from keras_gmlp.benchmark.client import CandidateError, Worker


def test_worker_is_asked_and_ended(tmp_path):
    worker = Worker(candidate("product-numpy", sizes=(32,), runtime="product-numpy"), tmp_path)
    answer = worker.ask({"size": 32, "calls": 3, "untimed": 1})
    assert len(answer["seconds"]) == 3
    assert min(answer["seconds"]) > 0
    assert answer["peak_megabytes"] > 5
    assert 0 < worker.cold_start < 60
    worker.process.kill()
    with pytest.raises(CandidateError, match="ended by SIGKILL"):
        worker.ask({"size": 32, "calls": 3, "untimed": 1})
    worker.close()


def test_worker_says_in_one_line_what_it_lacks(tmp_path):
    settings = {"runtime": "file", "path": "none.tflite", "shape": (8, 8, 3)}
    with pytest.raises(CandidateError, match=r"none\.tflite: no such model") as caught:
        Worker(candidate("tflite", **settings), tmp_path)
    assert "\n" not in str(caught.value)


def test_worker_without_an_answer_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT", 0.01)
    with pytest.raises(CandidateError, match="no answer within"):
        Worker(candidate("product-numpy", sizes=(32,), runtime="product-numpy"), tmp_path)


def test_worker_returns_the_logits_of_the_first_image(monkeypatch):
    monkeypatch.setattr(worker, "load", lambda settings: lambda size: lambda: np.eye(size))
    first = next(worker.work(iter([{"runtime": "file", "first": 2}])))
    assert first["logits"] == [1, 0]
    first = next(worker.work(iter([{"runtime": "product-numpy", "first": 2}])))
    assert first["logits"] is None


def test_variables_keep_the_user_s_flags(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    found = runtimes.variables(1, "jax")
    assert found["XLA_FLAGS"] == "--mine --xla_cpu_multi_thread_eigen=false"
    assert runtimes.variables(2, "jax")["XLA_FLAGS"] == "--mine"
    assert (found["OMP_NUM_THREADS"], found["KERAS_BACKEND"]) == ("1", "jax")


@pytest.mark.slow
def test_worker_of_timm(timm, tmp_path):
    settings = {"architecture": "mixer_s32_224", "shape": (32, 32, 3), "classes": 5}
    way = candidate("timm", sizes=(1,), runtime="timm", **settings)
    worker = Worker(way, tmp_path)
    assert len(worker.ask({"size": 2, "calls": 3, "untimed": 0})["seconds"]) == 3
    worker.close()
