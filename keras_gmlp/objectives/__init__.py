"""Losses, metrics and optimizers: what training minimizes, measures and steps with."""
