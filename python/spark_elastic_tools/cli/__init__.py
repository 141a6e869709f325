"""The command line `spark-elastic`."""
