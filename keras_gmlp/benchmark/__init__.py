"""Measures how fast models run: each candidate in its own process, all of them in turns.

`files` prepares the model files, `candidates` lists the ways to run them, and `runtimes` loads one
of them inside a `worker` process. `client` starts and asks a worker, `measuring` takes the
candidates in turns, and `machine_load` reads what else the machine does. `report` presents the
results. `harness` measures the speeds of `training_speed` and `input_speed`.
"""
