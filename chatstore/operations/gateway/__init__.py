"""Reading and writing of messages, for chat gateways and pages."""
