"""The progress of long work, as a line of text that overwrites itself."""

import shutil
import sys


class StatusLine:
    """A line on standard error that shows the state of long work on a terminal.

    Args:
        log: Whether to print each state on a new line if standard error is not a terminal.
            Defaults to False, which prints none.
    """

    def __init__(self, log=False):
        self.log = log
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
