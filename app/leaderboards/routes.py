"""Routes of leaderboards."""

from app.http.callers.area import Area
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Endpoint
from app.leaderboards.errors import InReward
from app.leaderboards.query import query
from app.leaderboards.upload import upload

AREA = Area(
    "leaderboards",
    "Leaderboards",
    "Scores of users, and their ranks in the current period of a board.",
    s2s=True,
    scope="leaderboards",
)

LEADERBOARD_ROUTES = [
    Endpoint(
        "POST",
        "/bp/leaderboard/data",
        upload,
        AREA,
        s2s="/bp/server/user/{user_id}/leaderboard/data",
        limit=Limit("board_upload", by="name"),
        errors=(InReward,),
    ),
    Endpoint("POST", "/bp/leaderboard", query, AREA, s2s="/bp/server/user/{user_id}/leaderboard"),
]
