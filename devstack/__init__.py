"""The servers of a developer's machine and of the tests: `python -m devstack`."""
