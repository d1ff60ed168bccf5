// The texts of the overview.

export const OVERVIEW_TEXTS = {
  overviewPage: {
    live: "Live streams", perMinute: "Ended a minute", requests: "Requests a minute", money: "Paid today", held: "Held jobs", waiting: "Waiting jobs",
    oldest: (seconds) => `oldest due for ${seconds < 60 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`}`,
    readers: (count) => `${count} readers`, none: "none", payments: (count) => `${count} ${count === 1 ? "payment" : "payments"}`,
    kinds: { conversation: "conversations", tts: "speech", pronunciation: "pronunciations" },
    vendors: "Vendors", vendorsLead: "Time to the first output in the last five minutes.", vendor: "Vendor", stage: "Stage", attempts: "Attempts", failed: "Failed",
    p50: "p50", p95: "p95", noVendors: "No attempt in the last five minutes.",
    stages: { stt: "Recognition", llm: "Language model", tts: "Speech", assess: "Pronunciation" },
    errors: "Errors", errorsLead: "Responses of the last five minutes, by type.", noErrors: "No errors in the last five minutes.",
    breakers: (names) => `The circuit breaker is open for ${names.join(", ")}: calls go to the next strategy until it recovers.`,
    changes: "What changed last", noChanges: "Nothing yet.", processes: "Server processes",
    processesLead: "The figures above are the sum of what these processes publish every five seconds.",
    process: "Process", host: "Host", version: "Version", streams: "Streams", connections: "Connections", since: "Running since", state: "State",
    ready: "Serving", draining: "Draining", stopped: "Not live: reconnecting…", live_now: "Live",
    trend: (name) => `${name}, last two minutes`,
  },
};
