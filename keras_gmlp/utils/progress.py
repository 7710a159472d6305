"""How long work goes on: a line of text that is written over itself."""

import shutil
import sys


class StatusLine:
    """A line on standard error that shows the state of long work, on a terminal.

    Args:
        log: where standard error is no terminal, print each state as a line of its own; otherwise
            it is left out there.
    """

    def __init__(self, log=False):
        self.log = log
        self.width = 0

    def show(self, text):
        """Shows a state in the place of the last one."""
        if not sys.stderr.isatty():
            if self.log:
                self.say(text)
            return
        text = text[: shutil.get_terminal_size().columns - 1]
        print("\r" + text.ljust(self.width), end="", file=sys.stderr, flush=True)
        self.width = len(text)

    def say(self, text):
        """Prints a line that stays."""
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self):
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)
        self.width = 0
