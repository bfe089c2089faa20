"""Use cases of the message store: no HTTP, no Celery, every write names its actor.

Whatever removes or rewrites messages is not here but in moderation.
"""
