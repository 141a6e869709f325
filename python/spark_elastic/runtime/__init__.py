"""The policy process: the event loop around the scheduler, its timers and its journal."""
