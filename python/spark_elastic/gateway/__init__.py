"""The way to the driver: JSON in both directions. It only translates, and has no policy."""
