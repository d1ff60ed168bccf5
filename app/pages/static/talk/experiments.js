// What shows how the page and the server work together: the mouth, and a lost connection.

import { html } from "../vendor/preact.js";
import { Mouth } from "./mouth.js";

export function Experiments({ talk, player, withMouth }) {
  return html`<section class="experiments">
    ${withMouth &&
    html`<figure>
      <${Mouth} player=${player} visemes=${talk.shapes} />
      <figcaption>Mouth shapes of the voice</figcaption>
    </figure>`}
    <div>
      <button
        type="button"
        class="quiet small"
        aria-disabled=${talk.connected ? null : "true"}
        onClick=${() => talk.connected && talk.dropConnection()}
      >
        Disconnect
      </button>
      <small>The answer is resumed.</small>
    </div>
  </section>`;
}
