"""Use cases of moderation: no HTTP, no Celery; each names its actor and checks his rights here."""
