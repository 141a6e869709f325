"""Custom policies at work: each runs in a process of its own, which can be killed."""
