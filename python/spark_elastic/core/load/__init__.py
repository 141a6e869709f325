"""How much of what there is the queries need."""
