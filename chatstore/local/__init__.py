"""Layout, ports and secrets of the local stack, for the settings and for `devstack`."""
