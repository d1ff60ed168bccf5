"""Writes the pages of the reference and the types of the TypeScript client: `make reference`."""

from deploy.reference.pages import FOLDER, PAGES
from deploy.reference.typescript import API_TYPES, api_types

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
    API_TYPES.write_text(api_types())
