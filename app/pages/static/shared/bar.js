// The bar of a page: the logo, the links to the other pages, and the page's own tools at the right.

import { html } from "../vendor/preact.js";

// The server knows which pages it has, so it writes the links (`app/page_bar.py`).
const bar = document.getElementById("bar");

/** Whether this is a development server. In production, the bar has no links. */
export const development = bar.content.querySelector("nav") !== null;

/** The address of the page of this name if the bar has a link to it. */
export const pageHref = (name) =>
  [...bar.content.querySelectorAll("nav a")].find((link) => link.textContent.trim() === name)?.getAttribute("href");

export const Bar = ({ children }) => html`<header class="page-bar">
  <div class="page-links" dangerouslySetInnerHTML=${{ __html: bar.innerHTML }} />
  <div class="page-tools">${children}</div>
</header>`;
