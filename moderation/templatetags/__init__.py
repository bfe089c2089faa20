"""Tags of the pages: times, numbers, and what people wrote, made harmless."""
