// The texts of engagement, operations and trials.

export const AREA_TEXTS = {
  engagement: "Engagement",
  operations: "Operations",
  engagementPage: {
    tabs: { boards: "Leaderboards", mails: "Emails", suppressions: "Suppressions", predictions: "Predictions", images: "Images", sinks: "Event sinks" },
    user: "User", at: "At", strategy: "Strategy", status: "Status", opens: "Opened", opened: (opens, machine) => `${opens} (and ${machine} by programs)`, messageId: "Message id",
    account: "At the host", taskStates: { START: "In progress", SUCCESS: "Succeeded", FAILED: "Failed" }, error: "Error", board: "Board", config: "Config", openConfig: "Open config",
    noBoards: "No app has a leaderboard.", address: "Address", allStrategies: "All emails", reason: "Reason", empty: {
      mails: "No emails. Each email that the server sends is listed here, with its state.", suppressions: "No address is suppressed. Addresses that have unsubscribed are listed here.",
      predictions: "No predictions. What users have had predicted is listed here, with the errors of the hosts.", images: "No image tasks. What users have had drawn is listed here, with the errors of the hosts.",
    },
    reasons: { unsubscribed: "Unsubscribed", operator: "By an operator" },
    allow: "Allow again", allowText: (address) => `${address} gets these emails again.`, suppress: "Suppress an address", suppressText: "The address gets no emails of this strategy, or none at all.",
    strategyOrAll: "Strategy (empty: all)", period: "Period", periods: "Periods", ends: "Ends", rewarded: "Rewarded", noPeriods: "Nobody has uploaded a score yet.",
    states: { open: "Open", rewarding: "Rewarding", closed: "Closed" }, rank: "Rank", ranks: "Ranks", score: "Score", scores: "Users with a score", rewards: "Rewards",
    granted: (granted, all) => `${granted} of ${all} granted`, winners: "Winners", download: "Download the file", rewardAgain: "Run rewards again",
    rewardAgainText: "Winners who have not got their reward get it now. Nobody gets it twice.", rewarding: "The rewards run now.",
  },
  operationsPage: {
    tabs: { readiness: "Readiness", costs: "Costs", limits: "Limits", logins: "Failed logins", doctor: "Doctor", audit: "Audit log", operators: "Operators" },
    part: "Part", parts: { postgres: "PostgreSQL", valkey: "Valkey", configs: "Configs", objects: "Object store", secrets: "Secrets" }, state: "State", ready: "Ready", broken: "Not available", cause: "Cause", again: "Check again",
    point: "Point", seen: "Seen", todo: "Why it matters and what to do", found: { good: "Good", doubtful: "Doubtful", broken: "Broken" },
    noReport: "The doctor has not run within 30 days. Run it on the server:", doctor: "python -m app doctor", checked: (host) => `Checked from ${host}:`, runAgain: "To check again, run",
    processes: "Processes and versions", process: "Process", host: "Host", version: "Version", since: "Running since",
    at: "At", actor: "Operator", action: "What was done", subject: "Subject", reason: "Reason", changes: "Change", show: "Show", name: "Name", role: "Role", lastUsed: "Last used", expires: "Expires", expired: "Expired",
    roles: { viewer: "Viewer", editor: "Editor", admin: "Admin" }, noAudit: "No change matches. Each change by an operator or a command is listed here.", needsAdmin: "Operators are managed with the role admin.",
    add: "Add an operator", addText: "The token is shown once. Send it to the operator through a secure channel.", token: "The token, which is shown only now:", tokenHelp: "The operator signs in with it, and sets up an authenticator.",
    changeRole: "Change role", changeRoleText: (name) => `The permissions of ${name} change immediately.`, rotate: "New token", rotateText: (name) => `The token of ${name} and all sessions end. A new token is shown once.`,
    remove: "Remove", removeText: (name) => `${name} cannot sign in any more.`,
  },
  trial: {
    tab: "Try", lead: "The draft is tried as it is now, before it is published. The vendor is called once, and charges for the call.", report: "Text of the event", reported: "This is a test.", sinkLead: "An event named test is sent once to the draft of the sink.", sinkFailed: "The sink has not accepted the event",
    accepted: (ms) => `The sink has accepted the event after ${ms} ms.`, ask: "The user says", model: "Language model", modelHelp: "The vendor's name of a model that the account may use. Accounts for speech are tried with a config of that kind.", speak: "Speak this",
    asked: "Tell me in one sentence why the sky is blue.", spoken: "Hello! This is how I sound.", run: "Try it", running: "Trying…", failed: "The vendor has failed",
    platform: "Platform", firstOutput: "First output", elapsed: "Whole answer", usage: "Usage", estimated: "estimated", price: "Price",
    tokens: (input, output) => `${input} tokens in, ${output} out`, characters: (count) => `${count} characters`, events: (count) => `${count} events`, sound: "The sound of the voice",
    mailLead: "The email as its reader gets it, while you change it. Nothing is sent.", sendTest: "Send a test", sendTestText: "The draft is sent once, to this address. It does not count as an email of the strategy.", to: "Address",
    sent: (to) => `The email is on its way to ${to}.`, noSubject: "No subject", mailHtml: "The HTML of the email", mailText: "Plain text",
  },
};
