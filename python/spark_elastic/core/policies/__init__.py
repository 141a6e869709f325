"""Who says how much parallelism a query should have: one policy per file."""
