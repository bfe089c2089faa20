"""Pure values and functions of moderation: selections, manifests, plans, states.

They depend on neither Django nor a driver, and take the time as an argument.
"""
