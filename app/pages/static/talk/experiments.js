// What shows how the page and the server work together: the mouth, and a lost connection.

import { html } from "../vendor/preact.js";
import { Mouth } from "./mouth.js";

export function Experiments({ talk, player }) {
  return html`<section class="experiments">
    <${Mouth} player=${player} visemes=${talk.shapes} />
    <div>
      <button
        type="button"
        class="quiet"
        aria-disabled=${talk.connected ? null : "true"}
        onClick=${() => talk.connected && talk.dropConnection()}
      >
        Disconnect
      </button>
      <small>Drops the connection in the middle of an answer. The page resumes it.</small>
    </div>
  </section>`;
}
