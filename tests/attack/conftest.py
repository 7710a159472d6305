"""Profiles of Hypothesis, whose import takes a second."""

from hypothesis import settings

# The same inputs in each run; `make attack` takes more of them, and others.
settings.register_profile("short", max_examples=30, derandomize=True, deadline=None, database=None)
settings.register_profile("attack", max_examples=20_000, deadline=None, database=None)
settings.load_profile("short")
