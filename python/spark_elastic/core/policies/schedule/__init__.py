"""The policy `schedule`: limits by the time of the day, and times in which nothing is changed."""
