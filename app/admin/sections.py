"""The sections of the endpoints for operators in the API reference."""

from app.http.callers.area import Section

_API = "/admin/api"


def _section(name: str, title: str, description: str, *words: str) -> Section:
    """Return the section of the paths that begin with one of these words."""
    return Section(f"admin_{name}", title, description, tuple(f"{_API}/{word}" for word in words))


SECTIONS = (
    _section(
        "configs",
        "Configs",
        "Named settings of apps, with all their revisions, and trials of drafts before they are published.",
        "kinds",
        "configs",
        "sign_in",
        "platforms",
    ),
    _section(
        "overview", "Overview and costs", "What the processes do now, and what it costs.", "overview", "costs"
    ),
    _section(
        "streams",
        "Streams",
        "Streams that run or have ended, with their attempts at vendors, and the texts of conversations.",
        "streams",
        "ended_streams",
        "conversations",
    ),
    _section("users", "Users", "Users: their accounts, assets, orders and data.", "users", "login_failures"),
    _section(
        "payments",
        "Payments",
        "Payments, subscriptions, refunds and disputes, withdrawals, and the ledger of assets.",
        "payments",
        "withdrawals",
        "ledger",
    ),
    _section(
        "engagement",
        "Leaderboards, emails, models",
        "Leaderboards with their rewards, emails of strategies, predictions and images.",
        "leaderboards",
        "mails",
        "suppressions",
        "predictions",
        "image_tasks",
    ),
    _section("jobs", "Jobs", "Jobs that wait, run at fixed times, or are held after failures.", "jobs"),
    _section(
        "events",
        "Events and stored webhooks",
        "Events for the sinks of apps, and webhooks as platforms have sent them.",
        "events",
        "webhooks",
    ),
    _section(
        "operators",
        "Operators and audit log",
        "Who may use these endpoints, and the log of all changes.",
        "operators",
        "self",
        "audit",
    ),
)
