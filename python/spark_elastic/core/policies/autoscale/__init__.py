"""The policy `autoscale`, which decides by micro-batch durations and arrival rates: one file per question."""
