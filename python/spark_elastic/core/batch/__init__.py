"""Batch stages: how many partitions a shuffle writes, which ranges its tasks read, how a scan is split."""
