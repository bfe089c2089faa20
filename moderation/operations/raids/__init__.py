"""Detection of raids, and what a moderator needs to clear one."""
