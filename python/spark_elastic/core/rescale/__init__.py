"""The partition count that suits a query, whether a rescale pays, when it may begin, and its outcome."""
