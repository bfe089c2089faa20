"""Pure values and functions of moderation: selections, manifests, plans, states.

What enters knows no Django, no driver and no hidden clock.
"""
