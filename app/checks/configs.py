"""The checks of configs when they are written, beyond the models of their kinds.

A model also refuses a value when it is read, which makes its config unusable. The checks here only prevent values
from being written. Their findings in stored values are shown as warnings.
"""

from collections.abc import Iterator
from pathlib import Path

from app.checks.mail_links import chosen_links
from app.checks.platform_urls import versioned_url
from storage.configs.kinds.apps import App
from storage.configs.kinds.auth import SIGN_KEY_BYTES, Auth
from storage.configs.kinds.cardpay import CardPay
from storage.configs.kinds.email import Email, Template, Templates
from storage.configs.kinds.iplocation import IpLocation
from storage.configs.kinds.limits import RATES, Limits
from storage.configs.kinds.mail import MailStrategy
from storage.configs.kinds.products import Product
from storage.configs.kinds.server_keys import InvalidKey, key_material
from storage.configs.kinds.sign_in import SignIn
from storage.configs.kinds.walletpay import PayPalApp
from storage.configs.rows import ConfigKey
from storage.configs.rules import Checked, Fault, Named, Unknown
from streams.wire.model import Model
from streams.wire.money import exponent_of
from streams.wire.template import render, variables_of

_NEEDED = {
    "login_email": ("Code",),
    "sign_up_email": ("Code",),
    "verify": ("Link",),
    "reset": ("Link", "Code"),
}
"""By template: an email must show one of these variables, or readers cannot do what the email asks for."""
_SAFEGUARD = "NotMeLink"
_WITH_SAFEGUARD = ("verify", "notice")
"""The templates of emails that may contain a link to refuse a change of the account."""
_OF_MAILS = frozenset({"App", "Email", "TrackingPixelURL", "UnsubscribeURL"})
"""The variables of emails that this server sets, not requests."""
_CUSTOM, _PIXEL = "CustomVariables", "TrackingPixelURL"
_SHOWN = "3f9c0d4e"
"""Stands for the value of a variable. No template contains it by chance."""


def check(key: ConfigKey, value: Model, named: Named, unknown: Unknown) -> Checked:
    """Check a value of any kind. See `storage.configs.rules.Check`."""
    match value:
        case App():
            return Checked(value, list(_currency_faults(value)))
        case Auth():
            return Checked(value, list(_key_faults(value)), list(_short_keys(value)))
        case CardPay():
            return Checked(value, list(versioned_url(value.base_url)))
        case Limits() | IpLocation() | MailStrategy() | Email():
            return Checked(value, warnings=list(_warnings(value)))
    return _check_platforms(key, value, named, unknown)


def _warnings(value: Limits | IpLocation | MailStrategy | Email) -> Iterator[Fault]:
    match value:
        case Limits():
            yield from _unknown_rates(value)
        case IpLocation():
            yield from _missing_files(value)
        case MailStrategy():
            yield from _empty_variables(value)
        case Email():
            yield from _incomplete_templates(value)
            yield from _email_warnings(value)


def _check_platforms(key: ConfigKey, value: Model, named: Named, unknown: Unknown) -> Checked:
    """Check a value against the clients of platforms, imported here because they are slow to import."""
    match value:
        case SignIn():
            from app.checks import sign_in as sign_in_checks  # noqa: PLC0415

            return sign_in_checks.check(key.name, value)
        case PayPalApp() | Product():
            from app.checks import paypal as paypal_checks  # noqa: PLC0415

            return paypal_checks.check(value)
    from app.checks import vendors as vendor_checks  # noqa: PLC0415

    return vendor_checks.check(value, named, unknown)


def _currency_faults(app: App) -> Iterator[Fault]:
    try:
        exponent_of(app.currency)
    except ValueError as error:
        yield Fault("currency", str(error))


def _key_faults(auth: Auth) -> Iterator[Fault]:
    """Yield the keys that are publicly known, and those that cannot verify anything."""
    for index, sign_key in enumerate(auth.sign_keys):
        if not sign_key.key.get_secret_value():
            yield Fault(f"sign_keys[{index}].key", "must not be empty")
    for index, server_key in enumerate(auth.server_keys):
        try:
            key_material(server_key)
        except InvalidKey as error:
            yield Fault(f"server_keys[{index}].{error.field}", error.problem)


def _short_keys(auth: Auth) -> Iterator[Fault]:
    for index, sign_key in enumerate(auth.sign_keys):
        if len(sign_key.key.get_secret_value().encode()) < SIGN_KEY_BYTES:
            yield Fault(f"sign_keys[{index}].key", f"is shorter than {SIGN_KEY_BYTES} bytes, so it can be guessed")


def _unknown_rates(limits: Limits) -> Iterator[Fault]:
    for name in limits.rates:
        if name not in RATES:
            yield Fault(f"rates.{name}", f"has no effect: the rates are {', '.join(sorted(RATES))}")


def _missing_files(config: IpLocation) -> Iterator[Fault]:
    if config.database is not None and not Path(config.database).is_file():
        yield Fault("database", "names no file on this server")


def _empty_variables(strategy: MailStrategy) -> Iterator[Fault]:
    """Yield the parts of an email with variables that no request can set, or with malformed variables."""
    for path, part in (("subject", strategy.subject), ("html", strategy.html), ("text", strategy.text)):
        for name in dict.fromkeys(variables_of(part)):
            first, *rest = name.split(".")
            if first == _CUSTOM and rest:
                if rest[0] not in {*strategy.variables, _PIXEL}:
                    yield Fault(path, f"shows {{{{.{name}}}}}, and variables does not contain {rest[0]}")
            elif name not in _OF_MAILS:
                yield Fault(path, f"shows {{{{.{name}}}}}, which is always empty")
        yield from chosen_links(path, part)
        if "{{" in render(part, {}):
            yield Fault(path, "contains {{ where no variable begins, which is sent as it is")


def _incomplete_templates(email: Email) -> Iterator[Fault]:
    for purpose, variables in _NEEDED.items():
        for path, template, part in _parts(email, purpose):
            if not any(_shows(template, part, variable) for variable in variables):
                yield Fault(
                    path, f"does not contain {' or '.join(f'{{{{.{variable}}}}}' for variable in variables)}"
                )


def _email_warnings(email: Email) -> Iterator[Fault]:
    if not email.mail_accounts and (email.code_login or email.sign_up_verification or email.activation):
        yield Fault("mail_accounts", "is empty, so no code and no link can be sent")
    for purpose in Templates.model_fields:
        for path, _, part in _parts(email, purpose):
            yield from chosen_links(path, part)
    for purpose in _WITH_SAFEGUARD:
        for path, template, part in _parts(email, purpose):
            if not _shows(template, part, _SAFEGUARD):
                yield Fault(path, f"does not contain {{{{.{_SAFEGUARD}}}}}, with which the reader refuses a change")


def _parts(email: Email, purpose: str) -> Iterator[tuple[str, Template, str]]:
    """Yield the path, the template and the text of each part of the emails for a purpose. Readers see one part."""
    translations: dict[str, Template] = getattr(email.templates, purpose)
    for language, template in translations.items():
        for name, part in (("text", template.text), ("html", template.html)):
            if part:
                yield f"templates.{purpose}.{language}.{name}", template, part


def _shows(template: Template, part: str, variable: str) -> bool:
    """Return whether a reader of one part of an email sees a variable, in the subject or in the part."""
    return _SHOWN in render(f"{template.subject}\n{part}", {variable: _SHOWN})
