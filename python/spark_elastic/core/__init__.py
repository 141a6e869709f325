"""The scheduler itself: events in, actions out, and nothing else.

Nothing under this package reads a clock, draws a random number, starts a thread, opens a file or a socket, or
logs.
"""
