// What a tab remembers when it is reloaded, and what a browser remembers of its user's choices.

/** A store of the browser, or, where that is blocked or full, one that lasts for this visit. */
export class Store {
  #browsers = null;
  #visits = new Map();

  /** `find` gives the browser's: already to look at it may be forbidden. */
  constructor(find) {
    try {
      this.#browsers = find();
      this.#browsers.setItem("parley", "1");
      this.#browsers.removeItem("parley");
    } catch {
      this.#browsers = null;
    }
  }

  /** Whether what is kept outlives this visit. */
  get lasts() {
    return this.#browsers !== null;
  }

  getItem(key) {
    return this.#visits.get(key) ?? this.#browsers?.getItem(key) ?? null;
  }

  setItem(key, value) {
    try {
      if (this.#browsers === null) this.#visits.set(key, value);
      else this.#browsers.setItem(key, value);
    } catch {
      this.#visits.set(key, value); // it is full
    }
  }
}

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
