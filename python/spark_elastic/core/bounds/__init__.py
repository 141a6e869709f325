"""The parallelism that a query may have: where its bounds are declared, and what follows from them."""
