"""Measures how fast models run: each candidate in its own process, all of them in turns.

`files` prepares the model files, `runtimes` lists the ways to run them, a `worker` process loads
one, `measuring` takes them in turns, `machine_load` reads what else the machine does, and `report`
presents the results. `harness` measures the speeds of `training_speed` and `input_speed`.
"""
