"""Tools around the engine: the command line, its client of a driver, init scripts and artifacts."""
