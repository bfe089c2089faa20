"""Pure values and functions of the message store: ids, buckets, messages, live bounds.

What enters knows no Django, no driver and no hidden clock: the time is an argument.
"""
