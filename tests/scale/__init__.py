"""`python -m tests.scale`: the queries of pages and background work on the data of a year."""
