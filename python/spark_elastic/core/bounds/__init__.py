"""How much parallelism a query may have: who has declared which bounds, and what follows from them."""
