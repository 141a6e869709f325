"""The policy process: the loop around the scheduler, its timers and its journal."""
