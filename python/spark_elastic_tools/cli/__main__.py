"""``python -m spark_elastic_tools.cli`` is `spark-elastic`."""

from spark_elastic_tools.cli.main import main

main()
