"""Policies, which decide how many slots each query should have, and the limits on what they want."""
