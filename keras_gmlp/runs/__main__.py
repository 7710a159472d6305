"""Trains one run of a plan, `python -m keras_gmlp.runs SETTINGS`, a line of JSON.

The process ends when its standard input closes, as when the process that started it is killed.
"""

import json
import os
import sys
import threading


def main(arguments=None):
    """Trains the run; exits with a line on standard error if it fails."""
    threading.Thread(target=stop_with_parent, daemon=True).start()
    from keras_gmlp.runs.run import train_run
    from keras_gmlp.runs.settings import RunSettings
    from keras_gmlp.utils.environment import keep_freed_memory
    from keras_gmlp.utils.errors import first_line

    keep_freed_memory()
    (text,) = sys.argv[1:] if arguments is None else arguments
    try:
        train_run(RunSettings(**json.loads(text)), export=False, verbose=0)
    except (ValueError, TypeError, RuntimeError, OSError, ImportError) as error:
        sys.exit(first_line(error, 1000))


def stop_with_parent():
    """Ends this process when its standard input closes."""
    while os.read(0, 1):  # not sys.stdin: at exit a thread would hold its lock
        pass
    os._exit(130)


if __name__ == "__main__":
    main()
