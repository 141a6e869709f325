"""Generate scripts that install spark-elastic on the machines of a managed platform."""
