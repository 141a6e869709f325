"""``python -m spark_elastic.cli`` is `spark-elastic`."""

from spark_elastic.cli.main import main

main()
