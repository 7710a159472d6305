"""Freed memory stays in the process once `keep_freed_memory` was called, and only then."""

import ctypes
import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

MEASURE = """
import ctypes, resource
from keras_gmlp.utils.environment import keep_freed_memory
{call}
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    array = libc.malloc(64 * 2**20)
    ctypes.memset(array, 1, 64 * 2**20)
    libc.free(array)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults_of_a_second_array(call):
    """Pages that the system clears for 64 MiB after 64 MiB were freed, in a new process."""
    command = [sys.executable, "-c", MEASURE.format(call=call)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_freed_memory_is_kept():
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("no glibc")
    pages = 64 * 2**20 // resource.getpagesize()
    assert page_faults_of_a_second_array("assert keep_freed_memory()") < 100
    assert page_faults_of_a_second_array("") > 0.9 * pages  # importing changes nothing
