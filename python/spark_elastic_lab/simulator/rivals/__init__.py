"""The rules of others, made again from their public formulas, to be compared with: a file for each.

They decide how many executors there are, or how many slots a query has; everything else is as with our own
policies, which favours them: partitions follow the slots, and a rescale costs no restart.
"""
