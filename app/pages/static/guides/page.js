// A guide: the contents on narrow screens, and a button at each block of code that copies it.

import { openContents } from "../reference/menu.js";

const SHOWN_MS = 2_000;

openContents(document.querySelector("#contents"));
for (const block of document.querySelectorAll("pre")) addCopy(block);
for (const part of document.querySelectorAll("pre, .table")) if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;

function addCopy(block) {
  const place = document.createElement("div");
  place.className = "code";
  block.replaceWith(place);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", () => copy(block, button));
  place.append(block, button);
}

async function copy(block, button) {
  try {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(block); // Only secure contexts may write to the clipboard.
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
}
