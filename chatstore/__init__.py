"""The message store and the project's configuration: ids, reader, writer, import, settings.

It does not import `moderation`, which contains everything that deletes messages.
"""
