"""Object storage: files that are stored under a key and read through signed links (§2.12).

Files have signed links of this server with both object stores. These links support HEAD and Range and forbid
content sniffing. Links presigned by S3 answer HEAD with 403 and cannot carry `nosniff`. The price is that the bytes
pass through the server.
"""

from storage.objects.contract import ObjectStore, Stored
from storage.objects.keys import content_type_of, extension_of
from storage.objects.links import LINK_S, Links
from storage.objects.opening import open_objects

__all__ = [
    "LINK_S",
    "Links",
    "ObjectStore",
    "Stored",
    "content_type_of",
    "extension_of",
    "open_objects",
]
