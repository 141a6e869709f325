"""Experiments with the engine: the simulator with its rivals, and the demonstration on a real cluster."""
