// The texts of the overview.

const many = (count, one, more) => (count === 1 ? `1 ${one}` : `${count >= 1_000 && more.capped ? "At least " : ""}${count} ${more.text ?? more}`);
const capped = (text) => ({ text, capped: true });
const STORES = { postgres: "PostgreSQL", valkey: "Valkey", objects: "the object store", replica: "the replica of the database" };
const listOf = (names, count) => `${names.join(", ")}${count > names.length ? " …" : ""}`;

const STAGES = { stt: "Recognition", llm: "Language model", tts: "Speech", assess: "Pronunciation" };
const KINDS = { conversation: ["conversation", "conversations"], tts: ["speech stream", "speech streams"], pronunciation: ["pronunciation", "pronunciations"] };
const vendorOf = (name) => {
  const [stage, ...vendor] = name.split("/");
  return `${vendor.join("/")} (${(STAGES[stage] ?? stage).toLowerCase()})`;
};

export const OVERVIEW_TEXTS = {
  /** What needs attention: what it is, and what it means. */
  attention: {
    title: "Needs attention", calm: "Nothing needs attention.",
    needs: {
      store: ({ count }) => many(count, "store is away", "stores are away"),
      worker: () => "No worker runs",
      silent_process: ({ count }) => many(count, "process has stopped reporting", "processes have stopped reporting"),
      versions: ({ count }) => `${count} versions run side by side`,
      config: ({ count }) => many(count, "config cannot be used", "configs cannot be used"),
      breaker: ({ count }) => many(count, "vendor account is paused", "vendor accounts are paused"),
      vendor: ({ count }) => many(count, "vendor fails in nearly all attempts", "vendors fail in nearly all attempts"),
      mismatch: ({ count }) => many(count, "payment does not agree with its platform", capped("payments do not agree with their platforms")),
      webhook: ({ count }) => many(count, "webhook has failed", capped("webhooks have failed")),
      mail: ({ count }) => many(count, "email is held", "emails are held"),
      job: ({ count }) => many(count, "job is held", "jobs are held"),
      sink: ({ count }) => many(count, "event was not accepted by its sink", "events were not accepted by their sinks"),
    },
    means: {
      store: ({ names }) => `${names.map((name) => STORES[name] ?? name).join(", ")}: see which part is not ready, and why.`,
      worker: () => "Emails, webhooks, payments and deletions wait until one is started.",
      silent_process: ({ names, count }) => `${listOf(names, count)}: killed, hanging, or cut off from the stores.`,
      versions: ({ names }) => `${names.join(", ")}: normal during an upgrade, a forgotten process otherwise.`,
      config: ({ names, count }) => `${listOf(names, count)}. Requests that need it fail.`,
      breaker: ({ names, count }) => `${listOf(names, count)}: the vendor fails, so calls go to the next strategy until it recovers.`,
      vendor: ({ names, count }) => `${listOf(names.map(vendorOf), count)}, in the last five minutes. The attempts of a stream say why.`,
      mismatch: () => "Open each: it says what to do. Then mark it as settled.",
      webhook: ({ count }) => `${count === 1 ? "It is" : "They are"} tried again for hours, unless the job is held. Read why, then replay ${count === 1 ? "it" : "them"}.`,
      mail: () => "No further attempt is made. Read why, then send them again.",
      job: ({ names, count }) => `${listOf(names, Math.min(count, names.length))}. No further attempt is made. Read why, then run them again.`,
      sink: ({ names }) => `${names.join(", ")}. Read the answers, then deliver them again.`,
    },
  },
  overviewPage: {
    live: "Live streams", perMinute: "Streams ended a minute", requests: "Requests a minute", money: "Paid today", cost: "Vendor costs today", costNote: "at the configured prices", waiting: "Waiting jobs",
    oldest: (seconds) => `oldest waits ${seconds < 60 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`}`,
    readers: (count) => `${count} ${count === 1 ? "reader" : "readers"}`, noneRuns: "No stream runs now", nothing: "–", errorType: "Error type", responses: "Responses", payments: (count) => `${count} ${count === 1 ? "payment" : "payments"}`,
    kind: (name, count) => many(count, ...(KINDS[name] ?? [name, name])),
    vendors: "Vendors", vendorsLead: "Time to the first output in the last five minutes.", vendor: "Vendor", stage: "Stage", attempts: "Attempts", failed: "Failed",
    p50: "p50", p95: "p95", noVendors: "No attempt in the last five minutes.",
    stages: STAGES,
    errors: "Errors", errorsLead: "Responses of the last five minutes, by type.", noErrors: "No errors in the last five minutes.",
    changes: "What changed last", noChanges: "Nothing yet.", processes: "Server processes", noProcesses: "No process has published its figures within 20 seconds.",
    processesLead: "The figures above are the sum of what these processes publish every five seconds.",
    process: "Process", host: "Host", version: "Version", streams: "Streams", connections: "Connections", since: "Running since", state: "State",
    ready: "Serving", draining: "Draining", stopped: "Not live: reconnecting…", live_now: "Live",
    trend: (name) => `${name}, last two minutes`,
  },
};
