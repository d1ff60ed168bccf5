"""What the bot keeps across restarts: the user and the conversation of each chat, and the updates it has seen."""

import json
import sqlite3
from typing import Any

_TABLES = """
create table if not exists chats (chat_id integer primary key, uid text not null, conversation_id text);
create table if not exists updates (update_id integer primary key, body text not null, answered integer not null);
"""


class Memory:
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)  # Each statement is a transaction.
        self._db.executescript(_TABLES)

    def add(self, update: dict[str, Any]) -> bool:
        """Store an update. Return whether it is new: Telegram sends one again if it missed the response."""
        values = (update["update_id"], json.dumps(update))
        return self._db.execute("insert or ignore into updates values (?, ?, 0)", values).rowcount == 1

    def unanswered(self) -> list[dict[str, Any]]:
        rows = self._db.execute("select body from updates where answered = 0 order by update_id")
        return [json.loads(body) for (body,) in rows]

    def answered(self, update_id: int) -> None:
        self._db.execute("update updates set answered = 1 where update_id = ?", (update_id,))

    def chat(self, chat_id: int) -> tuple[str, str | None] | None:
        """Return the Parley user of a chat, and its conversation."""
        found: tuple[str, str | None] | None = self._db.execute(
            "select uid, conversation_id from chats where chat_id = ?", (chat_id,)
        ).fetchone()
        return found

    def put_chat(self, chat_id: int, uid: str, conversation_id: str | None) -> None:
        self._db.execute("insert or replace into chats values (?, ?, ?)", (chat_id, uid, conversation_id))
