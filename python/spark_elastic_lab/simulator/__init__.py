"""The production scheduler against a simulated Spark: what would happen with this load and these settings."""
