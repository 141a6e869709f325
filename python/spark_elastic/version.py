"""The single version number; both builds and the wheel read this line."""

__version__ = "0.1.0"
