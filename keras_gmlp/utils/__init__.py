"""Helpers that are independent of models."""
