"""The store itself and the project's wiring: ids, reader, writer, import, settings.

Nothing in here knows of moderators; what removes messages stands in `moderation`.
"""
