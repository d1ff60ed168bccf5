"""The page with the button that proves an address, for browsers that open the link of an email (§3.2).

Programs that scan emails open links too, but do not press buttons.
"""

from html import escape

from aiohttp import web

from app.accounts.email.verify_link import check_still_had, user_of
from app.accounts.mails.hosted import hosted_page, labels_for
from app.accounts.proofs.addresses import email_config
from app.http.rows.endpoint import Call
from storage.accounts import emails
from storage.accounts.codes import RightCode
from storage.configs.kinds.apps import APPS

_ENDED = ("logs_out", "deletes_password", "unlinks_all")
"""The changes of the account if a program has opened the link before. A freeze would have revoked the link."""


async def confirm_page(call: Call, code: RightCode) -> web.Response | None:
    """Return the page for a link, or `None` if there is nothing to ask. Nothing is changed.

    Without a script, its form is sent to the URL of the page.
    """
    services, app_id, uid = call.services, code.app_id, user_of(code)
    config = email_config(services, app_id)
    async with services.database.connection() as conn:
        addresses = await emails.find(conn, app_id, uid)
    check_still_had(code, addresses)
    is_current = code.target == addresses.current
    if not config.confirm_page or (is_current and addresses.strongly_proven):
        return None
    return hosted_page(
        call.request,
        app_id,
        labels_for(call.request)["confirm"],
        _form(call, code, ends=is_current and addresses.weakly_proven),
        forms_lead_to=config.verify_redirect_url or "",
    )


def _form(call: Call, code: RightCode, *, ends: bool) -> str:
    """Return the body of the page. `ends` says whether the button removes all other ways to log in."""
    labels, app = labels_for(call.request), call.services.configs.singleton(APPS, code.app_id).title or code.app_id
    more = f"<p>{escape(labels['confirm_more'].format(email=code.target, app=app))}</p>"
    if ends:
        items = "".join(f"<li>{escape(labels[f'change_{change}'])}</li>" for change in _ENDED)
        more += f"<p>{escape(labels['confirm_ends'])}</p><ul>{items}</ul>"
    return f'{more}<form method="post"><button>{escape(labels["confirm_button"])}</button></form>'
