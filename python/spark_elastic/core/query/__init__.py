"""The life of one streaming query: a file per state, a table of transitions, and when to rescale."""
