// What a tab remembers when it is reloaded, and what a browser remembers of its user's choices.

export class Memory {
  #store;
  #key;

  constructor(store, app, what) {
    this.#store = store;
    this.#key = `parley.${app}.${what}`;
  }

  read() {
    try {
      return JSON.parse(this.#store.getItem(this.#key)) ?? {};
    } catch {
      return {}; // written by another version of this page
    }
  }

  write(value) {
    this.#store.setItem(this.#key, JSON.stringify(value));
  }
}
