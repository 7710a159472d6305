"""The C library's allocator while a model trains."""

import ctypes

# glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3

MOST = 2**31 - 1  # bytes; they are C ints


def keep_freed_memory():
    """Has glibc keep memory that was freed for the arrays to come, for the rest of the process.

    Of its own, it maps every array of 32 MB or more anew and gives it back when it is freed. A
    step of training on the CPU makes such arrays again and again, and the system clears each page
    of each first: of EAMLP's time under PyTorch that was half. The process then holds what it once
    needed at most; arrays of 2 GB or more are given back as before.

    Returns:
        Whether that was done; there is nothing to do without glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # in this order: macOS and musl, others, Windows
        return False
    return all([mallopt(M_MMAP_THRESHOLD, MOST), mallopt(M_TRIM_THRESHOLD, MOST)])
