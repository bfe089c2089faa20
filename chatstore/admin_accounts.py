"""Admin pages of staff accounts, in place of Django's.

Admins create accounts and deactivate them; roles are given on a page of their own. Only superusers make superusers.
Django's groups and single permissions have no effect, and no page.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from chatstore.admin_lists import PrivateHistory
from chatstore.admin_log import RecordedAdmin
from chatstore.confirmation import require_confirmation
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_accounts

apps.get_app_config("auth").verbose_name = gettext_lazy("Staff accounts")

# Registered again below, with Unfold's forms.
admin.site.unregister(User)
# Roles replace them.
admin.site.unregister(Group)
# Their pages would show secrets; second factors are set up by their owners, and reset by admins on a page of ours.
admin.site.unregister(TOTPDevice)
admin.site.unregister(StaticDevice)

_ACCOUNT = (None, {"fields": ("username", "password")})
_PERSON = (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email")})
_ROLES = (
    gettext_lazy("Roles"),
    {
        "fields": ("is_active", "roles"),
        "description": gettext_lazy("An account that is not active cannot sign in, and its sessions end at once."),
    },
)
_SECOND_FACTOR = (gettext_lazy("Second factor"), {"fields": ("second_factor",)})
_SUPERUSER = (gettext_lazy("Superusers only"), {"fields": ("is_superuser",)})
_RIGHTS = {"is_superuser"}
_DATES = (gettext_lazy("Dates"), {"fields": ("last_login", "date_joined")})


class NewAccountForm(UserCreationForm):  # type: ignore[misc]
    """A new account. Django's text about passwords is about sign-ins that are not offered here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "usable_password" in self.fields:
            self.fields["usable_password"].label = gettext("Sign-in by password")
            self.fields["usable_password"].help_text = gettext(
                "Without a password the account can sign in by single sign-on only, if that is set up here."
            )


@admin.register(User)
class UserAdmin(RecordedAdmin, PrivateHistory, StockUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    """Staff accounts. They are deactivated, never deleted: purges and the audit log name them."""

    form = UserChangeForm
    add_form = NewAccountForm
    change_password_form = AdminPasswordChangeForm
    list_display: tuple[str, ...] = ("username", "first_name", "last_name", "has_second_factor", "last_login")
    list_filter = ("is_active",)
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined", "roles", "second_factor")

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Return the accounts, and whether each has a second factor."""
        accounts: QuerySet[User] = super().get_queryset(request)
        return accounts.annotate(has_device=Exists(TOTPDevice.objects.filter(user=OuterRef("pk"), confirmed=True)))

    @admin.display(description=gettext_lazy("Second factor"))
    def has_second_factor(self, account: User) -> str:
        """Return whether the account has a second factor."""
        return gettext("yes") if vars(account)["has_device"] else gettext("no")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of an account, without those of superusers for everyone else."""
        if obj is None:
            return super().get_fieldsets(request, obj)
        superuser = (_SUPERUSER,) if _is_superuser(request) else ()
        return (_ACCOUNT, _PERSON, _ROLES, _SECOND_FACTOR, *superuser, _DATES)

    @admin.display(description=gettext_lazy("Roles"))
    def roles(self, account: User) -> str:
        """Link to the roles of the account."""
        link = f"{reverse('roles')}?{urlencode({'account': account.get_username()})}"
        return format_html('<a href="{}" class="text-primary-600">{}</a>', link, gettext("View roles"))

    @admin.display(description=gettext_lazy("Second factor"))
    def second_factor(self, account: User) -> str:
        """Return whether the account has one, with a link that resets it."""
        if not TOTPDevice.objects.filter(user=account, confirmed=True).exists():
            return gettext("None")
        label, link = gettext("Reset …"), reverse("second_factor_reset", args=[account.pk])
        return format_html(
            '<span class="second-factor"><span>{}</span><a href="{}" class="text-primary-600">{}</a></span>',
            gettext("Authenticator app"),
            link,
            label,
        )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return a form that refuses to deactivate the account that is signed in."""
        form = super().get_form(request, obj, change=change, **kwargs)
        if obj is None or obj.pk != request.user.pk:
            return form

        class OwnAccountForm(form):  # type: ignore[valid-type,misc]
            def clean_is_active(self) -> bool:
                if not self.cleaned_data["is_active"]:
                    raise ValidationError(gettext("You cannot deactivate your own account."))
                return True

        return OwnAccountForm

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        """Save the account as one of the staff: all accounts are, and the admin lets no other in.

        Other rights take a recent confirmation.
        """
        if _RIGHTS & set(form.changed_data):
            require_confirmation(request)
        if change and "is_active" in form.changed_data:
            _require_present_right(request, obj)
        obj.is_staff = True
        super().save_model(request, obj, form, change)

    @method_decorator(sensitive_post_parameters())
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """Set the password of an account. It takes a recent confirmation, before the page is shown too."""
        if self.has_change_permission(request, self.get_object(request, unquote(id))):
            require_confirmation(request)
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the account may be changed: a superuser's password, for one, by superusers only."""
        protects = isinstance(obj, User) and obj.is_superuser and not _is_superuser(request)
        return not protects and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False for every account."""
        return False


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _require_present_right(request: HttpRequest, account: User) -> None:
    """Raise `PermissionDenied` unless the one who changes an account may do so now, with both accounts locked.

    Of two administrators who deactivate each other at the same time, one succeeds.
    """
    own = request.user.pk
    present = None if own is None else lock_accounts({account.pk, own}).get(own)
    if present is None or not present.has_perm("auth.change_user"):
        raise PermissionDenied
