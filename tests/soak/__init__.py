"""`make soak`: one purge under a hundred kills, with every server away for a while. Not a part of `make test`.

Scripts and the scenes they need; they write wherever the test servers are, in a database of their own.
"""
