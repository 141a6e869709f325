"""Scripts that install spark-elastic on the machines of a managed platform: of what, and from which files."""
