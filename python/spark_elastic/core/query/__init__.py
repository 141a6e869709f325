"""The life of one streaming query: its machine, a file per state, a table of transitions."""
