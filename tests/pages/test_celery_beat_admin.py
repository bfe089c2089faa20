"""The admin pages and actions of django-celery-beat check no permission, so they are closed to all users."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User

SignIn = Callable[[User], Client]


@pytest.mark.parametrize(
    "model", ["periodictask", "crontabschedule", "intervalschedule", "solarschedule", "clockedschedule"]
)
def test_no_role_reaches_them(model: str, sign_in: SignIn) -> None:
    root = User.objects.create_superuser(f"root-{model}-{User.objects.count()}")
    client = sign_in(root)
    for path in ("", "add/", "1/change/"):
        assert client.get(f"/admin/django_celery_beat/{model}/{path}").status_code == 404
    for action in ("run_tasks", "enable_tasks", "disable_tasks", "toggle_tasks"):
        fields = {"action": action, "_selected_action": "1"}
        assert client.post(f"/admin/django_celery_beat/{model}/", fields).status_code == 404
