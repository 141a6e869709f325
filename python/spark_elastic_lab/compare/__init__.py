"""`spark-elastic compare`: one job with plain Spark and with the plugin, in turns, and what each took."""
