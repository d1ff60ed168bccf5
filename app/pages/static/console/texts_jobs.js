// The texts of jobs and of event sinks.

export const JOB_TEXTS = {
  jobsPage: {
    tabs: { held: "Held jobs", queues: "Queues", schedules: "Schedules" },
    lead: "These jobs failed in all their attempts. Repair the cause, then run them again; or delete those that nobody needs any more.",
    noHeld: "No job is held. A job that fails in all its attempts would be listed here, with the reason.",
    groups: "Why jobs are held", jobs: "All held jobs", inGroup: "Jobs with this cause", allGroups: "All held jobs",
    cause: "Cause", count: "Jobs", first: "First", last: "Last", job: "Job", about: "About", configs: "Configs read", at: "Held since", errorType: "Error type",
    allApps: "All apps", user: "User", order: "Order", webhook: "Webhook", details: "Details",
    id: "Id", attempts: "Attempts", process: "Process of the last attempt", logLine: "In the log", message: "Fields of the job",
    causes: {
      internal: "A bug of the server. The log line has its text.", timeout: "It took too long.", worker_died: "The workers died while they ran it.",
      unknown: "The reason was not recorded.",
    },
    retry: "Run again", retryText: (job, id) => `Job ${id} (${job}) runs now, with all its attempts.`,
    drop: "Delete", dropText: (job, id) => `Job ${id} (${job}) is deleted, and what it was to do is never done.`,
    retryAll: "Run all again", retryAllText: (count, job) => `${count} ${job} ${count === 1 ? "job runs" : "jobs run"} now, with all attempts. At most 1000 are changed at once.`,
    dropAll: "Delete all", dropAllText: (count, job) => `${count} ${job} ${count === 1 ? "job is" : "jobs are"} deleted, and what they were to do is never done. At most 1000 are deleted at once.`,
    did: { retry: "run again", drop: "deleted" }, changed: ({ changed, remaining }, did) => `${changed} ${changed === 1 ? "job was" : "jobs were"} ${did}.${remaining ? ` ${remaining} with this cause are still held.` : ""}`,
    done: "Done.",
    noJobs: "No job waits or runs.", status: "Status", statuses: { todo: "Waiting", doing: "Running", failed: "Held" }, oldest: "Oldest waits",
    noSchedules: "No worker has told its schedules yet. Start one: python -m app worker", noWorker: "No worker runs",
    noWorkerText: "Emails, webhooks, payments and deletions wait until one does: python -m app worker", workers: (count) => `${count} ${count === 1 ? "worker runs" : "workers run"}.`,
    times: "Times (UTC)", every: (count, unit) => `every ${count === 1 ? unit : `${count} ${unit === "minute" ? "min" : unit === "hour" ? "h" : "s"}`}`, daily: (time) => `daily at ${time}`, lastRun: "Last run", outcome: "Outcome", nextRun: "Next run", outcomes: { waiting: "Waiting", running: "Running", held: "Held", succeeded: "Succeeded" },
    never: "Not yet",
  },
  sinksPage: {
    title: "Event sinks", lead: "Events that a sink has not accepted are tried again for about a day. Then the server gives up, until somebody has them delivered again.",
    none: "No app has an event sink. A config of kind events adds one.", sink: "Sink", state: "State", works: "Works", broken: "Cannot be used", deleted: "Deleted", failing: "Refuses events",
    waiting: "Waiting", dead: "Given up", oldest: "Oldest waits", retryAll: "Deliver all again", retryAllText: (sink) => `All events that ${sink} has not accepted are due now, with all attempts.`,
    events: "Events that were not accepted", noEvents: "Every event was accepted.", event: "Event", status: "Status", statuses: { waiting: "Waiting", dead: "Given up" }, answer: "Answer of the sink",
    attempts: (count) => `${count} failed ${count === 1 ? "attempt" : "attempts"}`, user: "User", at: "Happened", due: "next attempt", retry: "Deliver again", retryText: (event) => `The event ${event} is due now, with all its attempts.`,
    retried: (count) => `${count} ${count === 1 ? "event is" : "events are"} due now.`,
  },
};
