"""The REST API: a WSGI application that is reached through the servlet under the driver's Spark UI."""
