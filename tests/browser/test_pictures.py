"""Pictures are stored, and never decide about a test."""

from tests.browser.pictures import FOLDER, keep_picture
from tests.browser.talk_page import TalkPage


async def test_a_picture_that_cannot_be_taken_is_reported(talk: TalkPage, capsys) -> None:
    await talk.page.close()
    await keep_picture(talk.page, "closed")
    assert "no picture closed: " in capsys.readouterr().out
    assert not (FOLDER / "closed.png").exists()
