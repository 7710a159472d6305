"""Child processes that run cases, restarted after each crash and hang."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

from load_app import ROOT

from attack.kinds import KINDS

GOOD = ("ok", "refused")

BAD = ("output", "traceback", "silent loss", "crash", "hang", "memory")

START = 300.0  # seconds that a worker may take to import and to prepare


class Worker:
    """A process that runs cases in a folder of its own; a context manager."""

    def __init__(self, seed, folder):
        self.seed, self.folder, self.process, self.prepared = seed, folder, None, set()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._end()

    def run(self, kind, number):
        """Returns the result of a case, a dict with its outcome, text, seconds and bytes."""
        if self.process is None:
            self._start()
        self.process.stdin.write(f"{kind} {number}\n".encode())
        if kind not in self.prepared:
            self._await_ready(kind)
        start = time.monotonic()
        answer = self._read(KINDS[kind].seconds)
        if answer is None:
            outcome, text = "hang" if self.process.poll() is None else "crash", ""
            code = self._end()
            if outcome == "crash":
                reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                text = f"{reason}\n{self._read_output()}"
            seconds = time.monotonic() - start
            return {"outcome": outcome, "text": text, "seconds": seconds, "memory": 0}
        result = json.loads(answer)
        if result["memory"] > KINDS[kind].memory and result["outcome"] in GOOD:
            result["outcome"] = "memory"
        return result

    def keep(self, result, kind, number, folder):
        """Copies the files of the last case to a folder, with its result and its command."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with contextlib.suppress(OSError, shutil.Error):  # links and folders without rights
            shutil.copytree(self.folder / "case", folder / "case", symlinks=True)
        command = f"make attack ATTACK='--seed {self.seed} --case {kind}:{number}'"
        text = json.dumps({"command": command, **result}, indent=2)
        (folder / "result.json").write_text(text + "\n")

    def _start(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
            "KERAS_BACKEND": "torch",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "attack.worker", str(self.seed), self.folder]
        self.process = subprocess.Popen(
            command,
            bufsize=0,  # so that `select` sees every line that has not been read
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def _await_ready(self, kind):
        """Waits until the process has imported and prepared a kind that is new to it."""
        if self._read(START) is None:
            self._end()
            raise RuntimeError(f"the worker of {kind} does not start: {self._read_output()}")
        self.prepared.add(kind)

    def _read(self, seconds):
        """Returns a line of the process; `None` if it ends or takes too long."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
        return line or None

    def _read_output(self):
        text = (self.folder / "output").read_text(errors="replace")
        return text.strip()[-2000:]

    def _end(self):
        if self.process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):  # its children, too
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process, self.prepared = None, set()
        return code
