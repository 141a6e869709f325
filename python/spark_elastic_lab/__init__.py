"""Where the engine is tried: the simulator with its rivals, and the demonstration on a real cluster."""
