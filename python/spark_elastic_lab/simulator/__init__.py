"""Runs the production scheduler against a simulated Spark, with a given load and settings."""
