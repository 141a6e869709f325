"""Which partition count suits a query, whether a rescale pays, when it may begin, what became of it."""
