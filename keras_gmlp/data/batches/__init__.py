"""Samples to batches, on the host and on the device."""
