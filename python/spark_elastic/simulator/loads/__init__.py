"""Loads: how many rows come in, second by second."""
