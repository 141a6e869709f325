"""Running custom policies: each has a process of its own, which can be killed."""
