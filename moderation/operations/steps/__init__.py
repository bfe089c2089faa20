"""Steps of purges: claims, splits, totals, and the messages they deleted."""
