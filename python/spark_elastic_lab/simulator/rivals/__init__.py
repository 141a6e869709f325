"""Rival scaling rules, reimplemented from their public formulas, for comparison.

They decide the number of executors, or of the slots of a query. Everything else works as with our
own policies, which favours them: partitions follow the slots, and a rescale costs no restart.
"""
