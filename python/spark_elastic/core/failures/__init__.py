"""After a failure: whether a restart is useful and allowed, and the wait before it."""
