"""The way to the driver: one connection, JSON both ways. Translation only, no policy."""
