"""The app's configuration."""

from importlib import import_module

from django.apps import AppConfig


class ModerationConfig(AppConfig):
    """Ends sessions of accounts that lose rights in any process, and so in commands too."""

    name = "moderation"

    def ready(self) -> None:
        # Its receivers are connected when it is imported, which needs the models.
        import_module("moderation.sign_in")
