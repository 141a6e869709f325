"""Batch stages: the partitions that a shuffle writes, the ranges that tasks read, the splits of a scan."""
