"""What people run beside the engine: the command line, its client of a driver, init scripts, artifacts."""
