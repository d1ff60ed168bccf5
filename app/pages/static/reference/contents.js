// The contents at the side of the page: groups, of which one is open, their sections and operations.

import { html, render } from "../vendor/preact.js";
import { openContents } from "./menu.js";

/** Show the contents. Return `show`, which opens and marks a section and an operation. */
export function showContents(outline) {
  const nav = document.querySelector("#contents");
  render(html`${outline.map((group, index) => Group(group, index === 0))}`, nav);
  openContents(nav);
  openSections(nav);
  return { show: (section, operation) => show(nav, section, operation) };
}

function Group(group, isOpen) {
  return html`<details class="group" name="group" open=${isOpen}>
    <summary>${group.title}</summary>
    ${group.sections.map(Section)}
  </details>`;
}

function Section(section) {
  return html`<details class="section" name="section" data-anchor=${section.anchor}>
    <summary>${section.title}</summary>
    <ul>
      ${section.operations.map(
        (operation) => html`<li>
          <a href=${`#${operation.anchor}`} data-anchor=${operation.anchor}>
            <span>${operation.title}</span> <code class=${operation.method.toLowerCase()}>${short(operation.method)}</code>
          </a>
        </li>`,
      )}
    </ul>
  </details>`;
}

function short(method) {
  return method === "DELETE" ? "DEL" : method;
}

function openSections(nav) {
  nav.addEventListener("click", (event) => {
    const section = event.target.closest("summary")?.parentElement.closest("details.section");
    if (section && !section.open) location.hash = section.dataset.anchor;
  });
}

function show(nav, section, operation) {
  for (const marked of nav.querySelectorAll("[aria-current]")) marked.removeAttribute("aria-current");
  const opened = section && nav.querySelector(`details[data-anchor="${CSS.escape(section)}"]`);
  if (!opened) return;
  opened.parentElement.open = true;
  opened.open = true;
  const current = (operation && nav.querySelector(`a[data-anchor="${CSS.escape(operation)}"]`)) || opened.firstElementChild;
  current.setAttribute("aria-current", "location");
  moveTo(nav, current);
}

function moveTo(nav, current) {
  // `scrollIntoView` would also move the page.
  const { top, bottom } = current.getBoundingClientRect();
  const seen = nav.getBoundingClientRect();
  if (top < seen.top || bottom > seen.bottom) nav.scrollTop += top - seen.top - seen.height / 3;
}
