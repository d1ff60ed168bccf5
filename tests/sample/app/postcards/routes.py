"""Routes of postcards."""

from app.http.callers.area import Area
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Endpoint
from app.postcards.postcards import delete, list_postcards, send
from storage.postcards import PostcardNotFound

AREA = Area(
    "postcards", "Postcards", "Printed postcards that an app sends to its users.", s2s=True, scope="postcards"
)

POSTCARD_ROUTES = [
    Endpoint("POST", "/bp/server/user/{user_id}/postcard", send, AREA, limit=Limit("postcards")),
    Endpoint("GET", "/bp/user/me/postcards", list_postcards, AREA),
    Endpoint("DELETE", "/bp/user/me/postcard/{postcard_id}", delete, AREA, errors=(PostcardNotFound,)),
]
