"""Streaming programs: their operators, generation, printing, execution and comparison."""
