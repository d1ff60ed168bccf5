"""Keys of the audio that text-to-speech streams store: one folder per app and day."""

from datetime import UTC, date, datetime


def speech_name(app_id: str, user_id: str, *, stream_id: str, now: datetime) -> str:
    """Return the key of a stream's audio without its extension. `now` is the app's time in UTC."""
    return f"{days_folder(app_id)}{now:%Y%m%d}/{user_id}/{stream_id}"


def days_folder(app_id: str) -> str:
    """The folder that holds the app's folders of days."""
    return f"speech/{app_id}/"


def day_of(folder: str) -> date | None:
    """The day of a folder such as `speech/default/20261122/`; None where its name is not a day."""
    try:
        return datetime.strptime(folder.rstrip("/").rpartition("/")[2], "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        return None
