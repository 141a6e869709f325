"""What decides how many slots each query should have: policies, and the limits that stand behind them."""
