"""Use cases of the message store, independent of HTTP and Celery; every write names its actor.

Code that deletes or rewrites messages in bulk is in `moderation`.
"""
