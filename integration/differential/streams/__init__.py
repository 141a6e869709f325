"""Streaming programs: their operators, how chance makes them, how they are printed, run and compared."""
