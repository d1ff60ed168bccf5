// Plays the answers of a conversation, and knows how much of each the user has heard.

export class Playback {
  /** The turn whose answer is played once more, or null. */
  replayed = null;
  #player;

  constructor(player) {
    this.#player = player;
  }

  get playing() {
    return this.#player.playing;
  }

  /** Whether the browser plays nothing until the user touches the page. */
  get blocked() {
    return this.#player.state === "blocked";
  }

  push(turn, event) {
    if (!turn.silenced) this.#player.push(event);
  }

  /** Note that no more audio of a turn arrives. */
  end(turn) {
    if (!turn.silenced) this.#player.end();
  }

  /** Note that the state of the player has changed. */
  changed() {
    if (!this.#player.playing) this.replayed = null;
  }

  /** Play the answer of a turn once more. What the server knows of it stays as it is. */
  replay(turn) {
    this.#player.begin();
    for (const event of turn.sounds) this.#player.push(event);
    this.replayed = turn;
    this.#player.end();
  }

  stopReplay() {
    this.#player.stop();
  }

  /** Stop the answer of a turn. Return how many milliseconds of it were heard, or null if that is unknown. */
  silence(turn) {
    turn.silenced = true;
    const stoppedAt = this.#player.stop();
    if (!turn.speaks) return null;
    return stoppedAt === null ? turn.heardBefore || null : this.heardOf(turn);
  }

  /** Return how much of the answer the user has heard. After a reload it is played from its beginning. */
  heardOf(turn) {
    return Math.max(turn.hasAudio ? this.#player.heardMs : 0, turn.heardBefore);
  }
}
