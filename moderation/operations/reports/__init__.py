"""Members' reports of messages: the queue, claims, resolutions, and the record of reported authors."""
