// What a conversation shows before its first turn.

import { html } from "../vendor/preact.js";
import { Orb } from "./orb.js";

const EXAMPLES = ["What is the capital of Japan?", "Tell me a story about the sea.", "Let us practise ordering a coffee."];

/**
 * `isLocal`: whether a model of this machine answers. `connectHref`: where operators connect another, or undefined.
 * `guidesHref`: where the guides are, or undefined.
 */
export function Welcome({ talk, player, isLocal, connectHref, guidesHref }) {
  return html`<div class="welcome">
    <${Orb} size="large" phase=${talk.phase} voice=${talk.voice} player=${player} />
    <h2>Say or type something</h2>
    <p>Parley is a server for voice and chat apps. Here you can try it: speak or type, hear the answer, interrupt it.</p>
    <div class="examples">
      ${EXAMPLES.map(
        (example) => html`<button key=${example} type="button" class="quiet" onClick=${() => talk.type(example)}>${example}</button>`,
      )}
    </div>
    ${isLocal &&
    html`<p class="model">
      A tiny local model answers${connectHref ? html`. <a href=${connectHref}>Connect your own</a>.` : ", so do not expect too much."}
    </p>`}
    ${guidesHref && html`<p class="model">A guide leads you to <a href="${guidesHref}/first-app">your first app</a>.</p>`}
  </div>`;
}
