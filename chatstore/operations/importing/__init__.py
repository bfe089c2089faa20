"""Import of exported channels and of demo data."""
