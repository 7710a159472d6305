"""The progress of long work, as a line of text that overwrites itself."""

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 3.0  # seconds of work before a bar appears
WIDTH = 30  # of a bar, in characters


class ProgressBar:
    """A line on standard error for the state of long work, on a terminal; a context manager."""

    def __init__(self, job="", total=0, patience=PATIENCE):
        self.job, self.total, self.width = job, total, 0
        self.shown = time.monotonic() + patience

    def show(self, done):
        """Shows how many items are done, at most five times per second."""
        now = time.monotonic()
        if now < self.shown:
            return
        self.shown = now + 0.2
        bar = "#" * (WIDTH * done // self.total)
        self.write(f"{self.job} [{bar:.<{WIDTH}}] {done:,} of {self.total:,}")

    def write(self, text):
        """Replaces the line by a text."""
        if sys.stderr.isatty():
            text = text[: shutil.get_terminal_size().columns - 1]
            print("\r" + text.ljust(self.width), end="", file=sys.stderr, flush=True)
            self.width = len(text)

    def print_line(self, text):
        """Prints a line that is not overwritten."""
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self):
        """Leaves an empty line."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)
        self.width = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.clear()


def map_in_threads(function, items, job):
    """Yields the results of a function in the order of its items, computed on all cores."""
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        with ProgressBar(job, len(items)) as progress:
            for done, result in enumerate(pool.map(function, items), 1):
                progress.show(done)
                yield result
    finally:
        pool.shutdown(cancel_futures=True)
