"""URLs of the project: the moderators' pages from the root on, and the admin.

Ours come first: among them is the admin's sign-in page.
"""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("moderation.urls")),
    path("admin/", admin.site.urls),
]

handler403 = "moderation.errors.permission_denied"
handler404 = "moderation.errors.page_not_found"
