"""The C library's memory allocator during training."""

import ctypes

# glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3

MOST = 2**31 - 1  # bytes; the thresholds are C ints


def keep_freed_memory():
    """Makes glibc keep freed memory for later arrays, for the rest of the process.

    By default glibc maps each array of 32 MB or more separately and returns it when it is freed. A
    training step on the CPU creates such arrays again and again, and the system clears their pages
    each time: half the time of EAMLP on PyTorch. Afterwards the process keeps the most memory it
    needed. Arrays of 2 GB or more are returned as before.

    Call it in a program, not in a library: it affects the whole process.

    Returns:
        Whether it took effect; `False` without glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # in this order: macOS and musl, others, Windows
        return False
    return all([mallopt(M_MMAP_THRESHOLD, MOST), mallopt(M_TRIM_THRESHOLD, MOST)])
