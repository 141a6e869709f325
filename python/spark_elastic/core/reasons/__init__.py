"""Every reason that a decision can have, and the one sentence that says it."""
