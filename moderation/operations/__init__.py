"""Use cases of moderation, without HTTP and Celery. Each takes the actor as an argument and checks permissions."""
