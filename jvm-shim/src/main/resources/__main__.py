"""Run a module of the policy engine: the installed one if it has this jar's version, else the jar's own.

The driver starts ``PYTHON spark-elastic_....jar spark_elastic.runtime``, and Python runs this file in the
jar. A Python that is too old must be able to read this file, so nothing here is newer than Python 2.7.
"""

import os
import subprocess
import sys

OLDEST = (3, 10)
# PolicyProcess.scala knows this code, and does not try again, because the result would be the same.
CANNOT_RUN = 5

jar = os.path.abspath(sys.argv[0])
python = (sys.executable or "python") + " (Python " + ".".join(map(str, sys.version_info[:3])) + ")"

if sys.version_info[:2] < OLDEST:
    # A machine with an old Python of its own often also has a newer one, under its full name.
    names = ["python3." + str(minor) for minor in range(40, OLDEST[1] - 1, -1)]
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    check = "import sys; sys.exit(sys.version_info[:2] < " + repr(OLDEST) + ")"
    with open(os.devnull, "r+") as nothing:
        for newer in [os.path.join(folder, name) for name in names for folder in folders]:
            if not os.path.isfile(newer) or not os.access(newer, os.X_OK):
                continue
            # A file of that name may be a stub that only says what is not installed.
            if subprocess.call([newer, "-c", check], stdin=nothing, stdout=nothing, stderr=nothing) == 0:
                command = list(sys.argv)
                command.insert(0, newer)
                sys.stderr.write("INFO " + python + " is too old: runs with " + newer + "\n")
                sys.stderr.flush()
                os.execv(newer, command)
    needed = "the policy engine needs Python 3.10 or later, and no python3.N on PATH is one"
    sys.stderr.write(python + " is too old: " + needed + ": install it, or name it in spark.elastic.python\n")
    sys.exit(CANNOT_RUN)
else:
    import pkgutil
    import runpy
    from importlib import metadata
    from importlib.machinery import PathFinder

    # Only the engine may be imported from the jar, because its other folders would count as packages too.
    sys.path.remove(sys.argv[0])
    built = (pkgutil.get_data("__main__", "spark-elastic.properties") or b"").decode().splitlines()
    version = dict(line.split("=", 1) for line in built)["version"]
    # This name cannot be imported: PySpark puts the jars of --packages on the application's path.
    engine = os.path.join(jar, "policy-engine")
    if PathFinder.find_spec("spark_elastic", [engine]) is not None:
        try:
            installed = metadata.version("spark-elastic")
        except metadata.PackageNotFoundError:
            installed = ""
        if installed != version:
            sys.path.insert(0, engine)
            if installed:
                found = python + " has spark-elastic " + installed + " and the jar is " + version
                sys.stderr.write("INFO " + found + ": runs the policy engine that is in the jar\n")
    elif PathFinder.find_spec("spark_elastic") is None:
        install = sys.executable + " -m pip install spark-elastic==" + version
        found = python + " has no spark-elastic, and this jar has no policy engine in it"
        sys.stderr.write(found + ": type `" + install + "`, or take the jar from a Maven repository\n")
        sys.exit(CANNOT_RUN)
    runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
