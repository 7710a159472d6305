"""Prepared sets of TensorFlow Datasets, read without TensorFlow."""
