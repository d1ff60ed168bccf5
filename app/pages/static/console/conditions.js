// What must still be so when a config is saved, so that nobody replaces what somebody else has saved.

/** The headers of a call that makes a config. */
export const IF_ABSENT = { "If-None-Match": "*" };

/** The headers of a call that replaces a config as it was read. */
export const ifUnchanged = (config) => (config.isNew ? IF_ABSENT : { "If-Match": String(config.revision) });

/** Returns whether a call was refused because somebody else has saved the config since. */
export const isConflict = (error) => error.status === 412;
