"""The REST API: a WSGI application, reached through the servlet under the driver's Spark UI."""
