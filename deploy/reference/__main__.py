"""Writes the pages of the reference: `python -m deploy.reference`, or `make reference`."""

from deploy.reference.pages import FOLDER, PAGES

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
