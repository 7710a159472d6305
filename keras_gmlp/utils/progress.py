"""The progress of long work, as a line of text that overwrites itself."""

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 3.0  # seconds of work before a bar appears
WIDTH = 30  # of a bar, in characters


class StatusLine:
    """A line on standard error that shows the state of long work on a terminal."""

    def __init__(self, log=False):
        self.log = log  # whether to print each state on a new line if there is no terminal
        self.width = 0

    def show(self, text):
        """Replaces the last state."""
        if not sys.stderr.isatty():
            if self.log:
                self.say(text)
            return
        text = text[: shutil.get_terminal_size().columns - 1]
        print("\r" + text.ljust(self.width), end="", file=sys.stderr, flush=True)
        self.width = len(text)

    def say(self, text):
        """Prints a line that is not overwritten."""
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self):
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)
        self.width = 0


class ProgressBar:
    """A bar on standard error for work that takes longer than a few seconds; a context manager."""

    def __init__(self, job, total, patience=PATIENCE):
        self.job, self.total = job, total
        self.line, self.shown = StatusLine(), time.monotonic() + patience

    def show(self, done):
        """Shows how many items are done, at most five times per second."""
        now = time.monotonic()
        if now < self.shown:
            return
        self.shown = now + 0.2
        bar = "#" * (WIDTH * done // self.total)
        self.line.show(f"{self.job} [{bar:.<{WIDTH}}] {done:,} of {self.total:,}")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.line.clear()


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
