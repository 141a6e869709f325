"""The live view in a terminal: one picture, from the API of a driver or from a journal."""
