"""The policy that goes by what micro-batches take and what comes in: one file per question."""
