"""What the allocator is told."""

import ctypes
import resource

import pytest

from keras_gmlp.training import allocator, train


@pytest.fixture
def libc():
    found = ctypes.CDLL(None)
    if not hasattr(found, "mallopt"):
        pytest.skip("no glibc")
    found.malloc.restype = ctypes.c_void_p
    found.malloc.argtypes = [ctypes.c_size_t]
    found.free.argtypes = [ctypes.c_void_p]
    return found


def page_faults_of(libc, megabytes):
    """How many pages the system hands out for an array that is made, filled and freed."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    array = libc.malloc(megabytes * 2**20)
    ctypes.memset(array, 1, megabytes * 2**20)
    libc.free(array)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_memory_is_kept(libc):
    assert allocator.keep_freed_memory()
    page_faults_of(libc, 64)
    assert page_faults_of(libc, 64) < 100  # or 16,384 pages of 4 kB


def test_nothing_is_done_without_glibc(monkeypatch):
    class Other:
        def __init__(self, name):
            assert name is None

    monkeypatch.setattr(ctypes, "CDLL", Other)
    assert allocator.keep_freed_memory() is False


def test_training_does_so(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(train, "keep_freed_memory", lambda: called.append(True))
    monkeypatch.setattr(train, "_check_fit", lambda *_: None)
    monkeypatch.setattr(train, "_train", lambda *_: "metrics")
    assert train.train(None, None, None, tmp_path) == "metrics"
    assert called
