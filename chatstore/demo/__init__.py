"""Demo messages, made of a seed."""
