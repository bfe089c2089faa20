"""The message store and the project's wiring: ids, reader, writer, import, settings.

It knows nothing of moderators; everything that deletes messages is in `moderation`.
"""
