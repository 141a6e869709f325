"""After a failure: is a restart of any use, is it allowed, and how long to wait before it."""
