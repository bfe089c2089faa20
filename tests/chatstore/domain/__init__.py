"""The pure values, against plain oracles."""
