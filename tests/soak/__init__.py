"""`make soak`: one purge with a hundred kills and an outage of every server. Not part of `make test`.

Scripts and their data; they run on the test servers in a separate database.
"""
