"""Pages for browsers, their static files, and files behind signed links.

The talk page is at `/` (`talk.py`), the API reference at `/docs` (`reference.py`), the guides at `/docs/guides`
(`guides.py`), the console for operators at `/console` (`console.py`). The console calls the admin API with the
cookie of a session. `developers.py` has the accounts, payments and engagement pages of development servers,
`files.py` files behind signed links, `assets.py` and `static/` the static files, `rows.py` the rows of all pages.

No page has a build step. `static/talk/` contains ES modules that a browser loads unchanged, with Preact and htm in
one vendored file. `static/vendor/` holds each vendored file with its licence, version and digest. The talk page is
a client like any other, and uses the TypeScript client: `static/client/` is one module of it, which `make clients`
builds. `talk.js` is the conversation, `voice.js` what is recorded, and `turn.js` one turn as the page shows it,
which reports to `static/inside/record.js` what the panel "Look inside" shows.

The page at `/dev/accounts` is built in the same way (`static/accounts/`). `platforms.js` lists the flows,
`accounts.js` holds the state of the page and its calls, `exchanges.js` the requests and their `curl` lines. The
people who can sign in, and the faults, come from the sandbox (`vendors/sandbox/signin/choices.py`). The server
passes a choice on to the sandbox (`app/dev/accounts.py`), so that the browser needs to reach only the server,
except for the pictures of people.

The page at `/dev/payments` (`static/payments/`) shares the list of requests with it. `purchases.js` keeps its
state in the browser's session, because the payer leaves for a page of the sandbox, which returns to the address
in its parameter `back`. The page at `/dev/engagement` (`static/engagement/`) has a file for each panel: the state
of a leaderboard, an image task or an email, and the part of the page that shows it.

All pages have one look. `streams/wire/page_style.py` defines the logo, the colours and sizes of both colour
schemes, and the parts of small pages. The pages for one request (`app/http/html.py`) and those of the sandbox
(`vendors/sandbox/payments/pages.py`) contain it. The other pages load it as `logo.svg`, `theme.css`, `parts.css`
and `bar.css`. The developer pages share the styles of `static/accounts/style.css`.

All pages for developers and operators begin with one bar (`app/page_bar.py`). The server writes its links into
the page, because it knows which pages it has. `static/shared/bar.js` shows them on pages with scripts, beside the
tools of the page.

The inboxes at `/dev/mail` and `/dev/sms` are pages for one request (`app/dev/inbox_page.py`), so that they work
without scripts. `static/inbox/live.js` asks for the page again and changes only what differs, and copies codes.
`app/error_pages.py` is the page that a browser gets where there is none.
"""
