"""Look at the checkpoint of a streaming query that does not run, and change its state."""
