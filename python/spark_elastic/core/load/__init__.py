"""The share of the available slots that the queries need."""
