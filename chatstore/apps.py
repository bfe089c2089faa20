"""The app's configuration."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ChatstoreConfig(AppConfig):
    """Registers the maintenance jobs and monitor checks of every installed app."""

    name = "chatstore"

    def ready(self) -> None:
        # Models are loaded by now, and a circle of imports is not possible: nothing imports these modules.
        autodiscover_modules("maintenance_jobs")
