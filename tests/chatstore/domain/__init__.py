"""The pure domain values, compared with simple oracles."""
