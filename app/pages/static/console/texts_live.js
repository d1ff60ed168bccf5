// The texts of streams, and of what operations and support read: costs, limits, failed logins, ledgers and receipts.

const seconds = (ms) => (ms < 1_000 ? `${ms}\u00a0ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)}\u00a0s`);

const minutes = (seconds) => (seconds < 90 ? "minute" : `${Math.round(seconds / 60)} minutes`);

export const LIVE_TEXTS = {
  streamsPage: {
    tabs: { running: "Running", ended: "Ended" }, lead: "The streams that run now in all server processes.", endedLead: "Streams that have ended, with what their vendors cost.",
    total: (count, processes) => `${count} running in ${processes} ${processes === 1 ? "process" : "processes"}`,
    silent: (names) => (names.length === 1 ? `1 process did not answer: ${names[0]}` : `${names.length} processes did not answer: ${names.join(", ")}`),
    silentHelp: "Its streams may be missing here. It has just ended, or is overloaded. The list is read again every few seconds.",
    unknown: "The other processes could not be asked, because neither store is available. This list has the streams of one process only.",
    runningOf: "Running streams", endedOf: "Ended streams", none: "No streams are running.", noneEnded: "No streams have ended here yet.", noneFound: "None of the streams that were looked at match. Go to the next page to look further back.",
    stream: "Stream", user: "User", userHint: "User id", kinds: { conversation: "Conversation", tts: "Speech", pronunciation: "Pronunciation" }, answers: "Answered by",
    nobody: "Nobody yet", age: "Age", state: "State", states: { hearing: "Hearing", answering: "Answering", stopping: "Stopping", settling: "Storing" },
    readers: "Readers", lag: "Lag", events: "Events", process: "Process", strategy: "Strategy",
    cancel: "Cancel stream", end: "End", cancelText: "The stream ends now, and the answer so far is stored.",
    find: "Open a stream by its id", open: "Open", began: "Began", ended: "Ended", attempts: "Attempts", failedOf: (failed, all) => (failed ? `${all}, ${failed} failed` : `${all}`),
    outcome: "Outcome", outcomes: { won: "Answered", failed: "Failed", hedged: "Overtaken", canceled: "Canceled", running: "Running", answered: "Answered" },
    time: "Time", longest: "Longest attempt", price: "Price", since: "Began", hours: [["1", "In the last hour"], ["24", "In the last day"], ["168", "In the last week"], ["720", "In the last 30 days"]],
    usage: (input, output) => `${input} in, ${output} out`,
    span: (started, elapsed) => (started ? `${seconds(elapsed)}, began after ${seconds(started)}` : seconds(elapsed)), bar: (elapsed, first) => (first === undefined || first === null ? seconds(elapsed) : `${seconds(elapsed)}, first output after ${seconds(first)}`),
    started: (ms) => `began after ${seconds(ms)}`, why: "Why it failed", seconds,
    receipt: "Receipt", stages: { admission: "Admitted", input: "Input complete", stt: "Recognized", first_token: "First token", first_text: "First text", first_sentence: "First sentence",
      first_audio: "First audio", total: "End", overhead: "Our own time" },
    size: (bytes) => (bytes < 1_024 ? `${bytes}\u00a0B` : bytes < 1_048_576 ? `${(bytes / 1_024).toFixed(1)}\u00a0KiB` : `${(bytes / 1_048_576).toFixed(1)}\u00a0MiB`),
    sent: "Sent", characters: (count) => `${count} characters`, request: "Request", conversation: "Conversation", live: "Live", stopped: "Not live",
    private: "What is said in it needs the role admin.", noEvents: "No event has been read yet.", earlier: (count) => `Only the last ${count} events are shown.`,
    noAttempts: "No attempts at vendors are stored for this stream.", gone: "This stream does not run, and nothing is stored of it. Check the id and the app.",
  },
  costsPage: {
    lead: "Cost of vendor calls, at the configured prices. A stream counts for the hour in which it began, in UTC.", days: "Period", periods: [["1", "Today"], ["7", "7 days"], ["30", "30 days"]],
    by: "Add up by", dimensions: [["vendor", "Vendor"], ["model", "Model"], ["strategy", "Strategy"], ["app", "App"]], attempts: "Calls", failed: "Failed", price: "Cost", share: "Share",
    none: "No calls to vendors in this period.", missing: (count) => `${count} ${count === 1 ? "hour is" : "hours are"} still being added up. The figures grow until this note is gone.`,
    noModel: "No model named", since: (date) => `Since ${date}`,
  },
  limitsPage: {
    lead: (seconds, processes) => `What limits have refused in the last ${minutes(seconds)}, in ${processes} ${processes === 1 ? "process" : "processes"}.`, limit: "Limit", refused: "Refused", todo: "Where it is set",
    none: "No limit has refused anything.", settings: "Settings of the server", rates: "Rate in the config limits", field: "Config limits", fixed: "Fixed", strategy: "Strategy of images",
  },
  failuresPage: {
    lead: "Logins and links that were refused, and why. The user saw only a general message.", at: "At", operation: "What", operations: { login: "Log in", signup: "Sign up", bind: "Link", reauthorize: "Confirm" },
    platform: "Platform", identity: "Identity", identityHint: "Address or id", user: "User", request: "Request", requestHint: "X-Request-Id", userHint: "User id", why: "Why", steps: (count) => `${count} ${count === 1 ? "check" : "checks"}`,
    seen: "seen", allowed: "allowed", none: "No failed logins match. They are kept for the days in the config limits.", needsEditor: "Failed logins need the role editor.",
  },
  ledgerPage: {
    title: "Ledger entries", lead: "Each change of what the user owns, the newest first. Nothing is ever removed from it.", at: "At", entry: "Entry", asset: "Asset", units: "Units", period: "Period", order: "Order",
    reported: "Reported by", key: "Event", none: "Nothing was ever granted to this user.", now: "Owns now", quantity: "Units", until: "Until",
    entries: { grant: "Granted", refund: "Refunded", restore: "Restored", consume: "Used", return: "Returned", end: "Ended", cancel: "Canceled", suspend: "Suspended", resume: "Resumed", extend: "Extended", adjust: "Adjusted" },
  },
  receiptPage: {
    title: "Erasure receipt", open: "Open the receipt", erased: "The account was erased.", lead: "What was deleted with the account, and what is kept. It is signed by this server.", cause: "Erased", causes: { confirm: "by the user", freeze_end: "at the end of the freeze", operator: "by an operator" },
    deactivated: "Deactivated", complete: "Everything is deleted", incomplete: "Deletion is in progress", erasedAt: "Erased", deleted: "Deleted", what: "What", count: "Count", nothing: "Nothing was stored.", nothingOf: "What nothing was stored of", none: (names) => `Nothing was stored as ${names}.`, kept: "Kept", content: "Content",
    rows: "Rows", notSearched: "Not searched", platforms: "Tokens of sign-in platforms", platform: "Platform", token: "Token", settled: "Since", tokens: { pending: "Being revoked", revoked: "Revoked", failed: "Not revoked", unsupported: "Cannot be revoked", no_token: "None" },
    download: "Download the signed receipt", where: "Where",
  },
  operatorsPage: { expires: "Token expires", expiresHelp: "In your time zone. Empty: a new token never expires, and that of an operator stays as it is." },
};
