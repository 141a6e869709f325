"""Jars from Maven Central, and the Java to run them: for the build, the tests and the demonstration."""
