"""The command line of the suites."""

import sys

from integration.spark_suites.run import main

sys.exit(main())
