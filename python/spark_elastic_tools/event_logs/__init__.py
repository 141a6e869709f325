"""Spark's event logs: where they are, how they are compressed, and what their lines say."""
