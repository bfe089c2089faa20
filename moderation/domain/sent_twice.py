"""Forms that are sent twice, by a double click or because the answer took its time."""

import datetime as dt

SENT_TWICE_WITHIN = dt.timedelta(seconds=30)
"""What a person sends again within it is the same form; later, the person means it."""
