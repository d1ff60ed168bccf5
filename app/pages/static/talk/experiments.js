// What shows how the page and the server work together: the mouth, and a lost connection.

import { html } from "../vendor/preact.js";
import { Mouth } from "./mouth.js";

/** The mouth is there while an answer with mouth shapes is played, and the button while a turn runs. */
export function Experiments({ talk, player, withMouth }) {
  const speaks = withMouth && talk.phase === "speaking" && talk.shapes.length > 0;
  const runs = talk.current?.running;
  if (!speaks && !runs) return null;
  return html`<section class="experiments">
    ${speaks &&
    html`<figure>
      <${Mouth} player=${player} visemes=${talk.shapes} />
      <figcaption>Mouth shapes of the voice</figcaption>
    </figure>`}
    ${runs &&
    html`<div>
      <button
        type="button"
        class="quiet small"
        aria-disabled=${talk.connected ? null : "true"}
        onClick=${() => talk.connected && talk.dropConnection()}
      >
        Drop the connection
      </button>
      <small>Tests that the answer resumes.</small>
    </div>`}
  </section>`;
}
