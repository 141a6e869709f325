"""The demonstration: a real cluster, a plain streaming application, a scenario, and checks of the outcome."""
