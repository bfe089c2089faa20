"""Pure values and functions of the message store: ids, buckets, messages, live bounds.

Nothing here knows Django, a driver or a hidden clock: the current time is an argument.
"""
