// The texts of the audit log: who has changed what.

/** What an operator has done, as the words after the operator's name. */
export const ACTIONS = {
  "asset.adjust": "adjusted an asset", "asset.grant": "granted a product", "board.reward": "ran the rewards of a board again",
  "config.delete": "deleted a config", "config.put": "changed a config", "config.rollback": "restored a config", "config.try": "tried a draft", "events.retry": "had events delivered again",
  "job.drop": "deleted a job", "job.retry": "ran a job again", "mail.test": "sent a test email", "mismatch.resolve": "settled a mismatch",
  "operator.add": "added an operator", "operator.change": "changed an operator's role", "operator.remove": "removed an operator", "operator.rotate": "replaced an operator's token",
  "operator.sign_in": "signed in", "order.refund": "refunded a payment", "stream.cancel": "canceled a stream", "suppression.add": "suppressed an address",
  "suppression.remove": "allowed an address again", "user.ban": "banned the user", "user.end_sessions": "ended the sessions", "user.erase": "erased the user",
  "user.export": "exported the data", "user.export_read": "got a link to the export", "user.freeze": "froze the account", "user.recover": "recovered the account", "user.unban": "lifted the ban", "users.make": "made users",
  "webhook.replay": "replayed a webhook", "withdrawal.settle": "settled a withdrawal",
};

export const AUDIT_TEXTS = {
  audit: {
    actions: ACTIONS, inMenu: (said) => said[0].toUpperCase() + said.slice(1), actors: { root: "Root token", command: "Command line" },
    /** Authors of revisions that are no operators. */
    authors: { admin: "Root token", seed: "Command line" },
    kinds: { iplocation: "IP location", user: "User", job: "Job", webhook: "Webhook", operator: "Operator", suppression: "Address", withdrawal: "Withdrawal" },
    subject: (kind, name) => `${kind}: ${name}`,
  },
};
