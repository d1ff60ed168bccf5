// What the pages of the server load: everything for browsers in one module.

export * from "./src/index.js";
export * from "./src/audio/index.js";
