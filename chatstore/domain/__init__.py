"""Pure values and functions of the message store: ids, buckets, messages, live bounds.

Independent of Django and of any driver; the current time is an argument.
"""
