"""The live view in a terminal: one snapshot, from the API of a driver or from a journal."""
