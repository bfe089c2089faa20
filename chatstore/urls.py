"""URLs of the project: the admin, and the moderators' pages from the root on."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("moderation.urls")),
]
