"""The executors of the application: their slots, the number to request, and which to give back."""
