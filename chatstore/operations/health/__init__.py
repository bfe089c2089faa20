"""Health of channels and of the cluster."""
