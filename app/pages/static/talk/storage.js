// Values that the browser stores: what the page needs after a reload, and the user's choices.

/** A storage of the browser or, if that is blocked or full, one in memory that lasts for this visit. */
export class Store {
  #persistent = null;
  #temporary = new Map();

  /** `find` returns the browser's storage. It is a function because the mere access may throw. */
  constructor(find) {
    try {
      this.#persistent = find();
      this.#persistent.setItem("parley", "1");
      this.#persistent.removeItem("parley");
    } catch {
      this.#persistent = null;
    }
  }

  /** Whether the stored values are kept for the next visit. */
  get isPersistent() {
    return this.#persistent !== null;
  }

  getItem(key) {
    return this.#temporary.get(key) ?? this.#persistent?.getItem(key) ?? null;
  }

  setItem(key, value) {
    try {
      if (this.#persistent === null) this.#temporary.set(key, value);
      else this.#persistent.setItem(key, value);
    } catch {
      this.#temporary.set(key, value); // The storage is full.
    }
  }
}

/** One entry of a `Store`, whose value is JSON. */
export class JsonEntry {
  #store;
  #key;

  constructor(store, app, name) {
    this.#store = store;
    this.#key = `parley.${app}.${name}`;
  }

  read() {
    try {
      return JSON.parse(this.#store.getItem(this.#key)) ?? {};
    } catch {
      return {}; // It was written by another version of this page.
    }
  }

  write(value) {
    this.#store.setItem(this.#key, JSON.stringify(value));
  }
}
