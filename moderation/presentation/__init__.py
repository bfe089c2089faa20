"""Text and pictures for people: formats in the viewer's language and time zone, and coordinates of SVG drawings."""
