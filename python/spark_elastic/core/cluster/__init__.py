"""The executors of the application: the slots that they have, how many to ask for, which to give back."""
