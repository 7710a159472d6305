"""Options and output that the programs share."""
