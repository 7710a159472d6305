"""Training runs: recipes, optimizers, callbacks, and the folder of a run."""
