"""The addresses of the moderators' pages."""

from django.urls import URLPattern, path

from moderation.views import session

urlpatterns: list[URLPattern] = [
    path("sign-in/", session.sign_in, name="sign_in"),
    path("sign-out/", session.sign_out, name="sign_out"),
]
