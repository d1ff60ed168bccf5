// The texts of users, their history and their orders.

const when = (text) => new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
const joined = (...parts) => parts.filter(Boolean).join(" · ");
const amount = (facts) => {
  try {
    const format = new Intl.NumberFormat(undefined, { style: "currency", currency: facts.currency });
    return format.format(facts.amount / 10 ** format.resolvedOptions().maximumFractionDigits);
  } catch {
    return `${facts.amount} ${facts.currency}`;
  }
};
const ENTRIES = {
  grant: (facts) => (facts.type === "consumable" ? `Got ${facts.quantity} ${facts.name}` : `Got ${facts.name}`),
  refund: (facts) => `Lost ${facts.name} to a refund`,
  restore: (facts) => `Got ${facts.name} back`,
  consume: (facts) => `Used ${facts.quantity} ${facts.name}`,
  return: (facts) => `Got ${facts.quantity} ${facts.name} back, because what used them has failed`,
  end: (facts) => `${facts.name} ended`,
  cancel: (facts) => `Canceled ${facts.name}`,
  suspend: (facts) => `${facts.name} was suspended`,
  resume: (facts) => `Resumed ${facts.name}`,
  adjust: (facts) => (facts.ends_at ? `${facts.name} now ends ${when(facts.ends_at)}` : `${facts.name}: ${facts.quantity > 0 ? "+" : ""}${facts.quantity}`),
};
const ORIGINS = { purchase: "a purchase", renewal: "a renewal", upgrade: "an upgrade", trial: "a trial", share: "a share", reward: "a reward",
  admin: "an operator", restore: "a restoration" };
const CHANNELS = { webhook: "a webhook", client: "the app", reconciliation: "reading back", operator: "an operator", server: "this server" };
const ACTIONS = { "asset.grant": "granted a product", "asset.adjust": "adjusted an asset", "user.export": "exported the data", "user.freeze": "froze the account",
  "user.recover": "recovered the account", "user.end_sessions": "ended the sessions", "user.erase": "erased the user", "stream.cancel": "cancelled a stream" };

export const USER_TEXTS = {
  usersPage: {
    lead: "Search by a user id, an email or another identity, or by an order, a payment, a withdrawal, a stream or a conversation.",
    search: "Search",
    searchHint: "ada@example.com, order id, stream id …",
    notFound: "Nobody has this. Ids must be whole; an address may be its beginning.",
    needsEditor: "Data of users needs the role editor.",
    user: "User", id: "Id", identities: "Identities", status: "Status", created: "Created", foundBy: "Found by",
    unnamed: "Unnamed user", guest: "Guest on a device",
    by: { user_id: "User id", identity: "Identity", earlier_email: "Earlier or unproven email", order: "Order", payment: "Payment", subscription: "Subscription",
      withdrawal: "Withdrawal", stream: "Stream", conversation: "Conversation", prediction: "Prediction", image: "Image task", mail: "Email" },
  },
  userPage: {
    account: "Account", assets: "Owns now", noAssets: "Nothing.", id: "User id", cuid: "Id in the app", created: "Created", sessions: "Sessions",
    restriction: "Cannot be frozen", unnamed: "Unnamed user", closes: "The account is frozen and will be erased at", until: "until", from: "from",
    types: { consumable: "units", nonconsumable: "for good", subscription: "subscription" }, origins: ORIGINS,
    grant: "Grant a product", grantText: "The user gets what the product grants, as if it had been bought. A subscription gets one period and does not renew.",
    product: "Product", granted: "The product was granted.",
    adjust: "Adjust", adjustText: (name) => `Change what the user has of ${name}. The ledger gets an entry; the rest is never below zero.`,
    adjustBy: "Units to add", adjustHelp: "Negative to take away.", adjustEnd: "Or when it ends", adjusted: "The asset was adjusted.",
    endSessions: "End sessions", endSessionsText: (count) => `The user is signed out everywhere (${count} sessions), and running streams end.`,
    ended: "The sessions have ended.",
    freeze: "Freeze", freezeText: "The user cannot log in any more. The account is erased when the freeze ends, unless it is recovered.", frozen: "The account is frozen.",
    recover: "Recover", recoverText: "The account can be used as before.", recovered: "The account is active again.",
    erase: "Erase", eraseText: "The user's data is deleted now: identities, sessions, conversations and files. The purchase history stays without a name. This cannot be undone.",
    erased: "The user is erased. The receipt says what was deleted.",
    export: "Export data", exporting: "Exporting…", exportReady: "Download export", exportFailed: "Export failed: try again",
  },
  history: {
    title: "History", show: "Show", none: "Nothing has happened.", older: "Show older",
    groups: { all: "All", money: "Money", sign_in: "Sign-in", use: "Use", support: "Support" },
    said: {
      account: (facts, id) => ({ created: "Account created", frozen: "Account frozen", deactivated: "Erased" })[id],
      session: (facts) => `Logged in with ${facts.platform}`,
      identity: (facts) => (facts.replaced ? `Replaced ${facts.social_id}` : facts.pending ? `Has not proven ${facts.social_id} yet` : `Linked ${facts.platform}: ${facts.social_id}`),
      login_failure: (facts) => `Failed to ${facts.operation} with ${facts.platform}`,
      mail: (facts) => `Email ${facts.strategy}`,
      asset: (facts) => ENTRIES[facts.entry]?.(facts) ?? `${facts.entry} ${facts.name}`,
      order: (facts) => `Ordered ${facts.bp_product_id ?? "something without a product"} for ${amount(facts)}`,
      subscription: (facts) => `Subscribed to ${facts.bp_product_id}`,
      withdrawal: (facts) => `Withdrew ${amount(facts)}`,
      board: (facts) => (facts.rank ? `Won rank ${facts.rank} of ${facts.board}` : `Scored ${facts.score} in ${facts.board}`),
      conversation: (facts) => `Conversation of ${facts.records} ${facts.records === 1 ? "turn" : "turns"}`,
      task: (facts) => `${facts.task === "image" ? "Image task" : "Prediction"} ${facts.strategy}`,
      operator: (facts) => `${facts.actor} ${ACTIONS[facts.action] ?? facts.action}`,
    },
    details: {
      account: (facts, id) => (id === "frozen" ? `until ${when(facts.close_time)}` : facts.cause && { confirm: "by the user", freeze_end: "the freeze had ended", operator: "by an operator" }[facts.cause]),
      session: (facts) => joined(facts.client_os, facts.user_agent, facts.address, facts.revoke_time && `ended ${when(facts.revoke_time)}`),
      identity: (facts) => (facts.trust === "client" ? "only the client says so" : ""),
      login_failure: (facts) => joined(facts.error_type, `request ${facts.request_id}`),
      mail: (facts) => (facts.opens ? `opened ${facts.opens} times` : ""),
      asset: (facts) => joined(`from ${ORIGINS[facts.origin] ?? facts.origin}`, `reported by ${CHANNELS[facts.channel] ?? facts.channel}`, facts.ends_at && facts.entry === "grant" && `until ${when(facts.ends_at)}`),
      order: (facts) => joined({ cardpay: "Card", walletpay: "Wallet" }[facts.platform], facts.order_id),
      subscription: (facts) => joined({ cardpay: "Card", walletpay: "Wallet" }[facts.platform], facts.subscription_id),
      withdrawal: (facts) => joined(facts.withdraw_id, facts.reason, facts.unknown_at && "the platform does not know the result any more"),
      board: (facts) => (facts.bp_product_id ? joined(`reward ${facts.bp_product_id}`, !facts.granted_at && "not granted yet") : ""),
      task: (facts) => joined(facts.type, facts.error, facts.host_id && `at the host: ${facts.host_id}`),
      operator: (facts) => facts.reason,
    },
  },
  orderPage: {
    order: "Order", subscription: "Subscription", noProduct: "Without a product", created: "Created", platform: "Platform", platformId: "Id at the platform", ownId: "Our id",
    ends: "Period ends", entries: "What the ledger says", noEntries: "The ledger has no entry for this.", webhooks: "What the platform has reported",
    noWebhooks: "No webhook of the three days after it names it.", at: "At", entry: "Entry", asset: "Asset", quantity: "Units", reportedBy: "Reported by", event: "Event",
    status: "Status", error: "Error", channels: CHANNELS,
    verdicts: {
      granted: { title: "It has granted what was bought.", todo: "The user has it now." },
      used: { title: "It was granted, and is used up.", todo: "The history of the user says when the units were used." },
      ended: { title: "It was granted, and its period is over.", todo: "See below when it ended and why." },
      refunded: { title: "It was granted, and the money was given back.", todo: "So the units were taken back too." },
      not_created: { title: "The platform has never confirmed this order.", todo: "Nothing was paid. It is read back until the platform answers, or forgets it. The user can order again." },
      not_approved: { title: "The payer has not approved it, so nothing was paid.", todo: "The user has closed the page of the platform, or is still there. There is nothing to refund. The user can order again." },
      not_captured: { title: "The payer has approved it, but the money was not taken.", todo: "The app must call capture when the user comes back. It can still do so; nothing was paid yet." },
      declined: { title: "The payment was declined.", todo: "Nothing was paid. The user can try another card, or ask the bank." },
      needs_customer: { title: "The payer must confirm the payment.", todo: "The bank asks for a further step (3-D Secure), and the user has not made it. Nothing was paid yet." },
      processing: { title: "The platform has not finished it.", todo: "It is read back until it has. Look again in some minutes." },
      canceled: { title: "It was canceled, or has expired, before anything was paid.", todo: "The user can order again." },
      no_product: { title: "It is paid, but it was created without a product.", todo: "So nothing was to be granted. If that is a mistake, correct the app's call, and grant the product by hand." },
      amount_differs: { title: "Another amount was paid than the price.", todo: "So it has granted nothing. Refund it at the platform, or grant the product by hand; then correct the price." },
      webhook_failed: { title: "The platform has reported it, but the work on its webhook fails.", todo: "Open the webhook below: its error says why. Correct the config, then replay it." },
      paid_not_granted: { title: "It is paid, but the ledger has no entry.", todo: "Replay its webhook if there is one. Otherwise wait for the reconciliation, which reads back every few minutes, or grant the product by hand." },
    },
  },
  conversationPage: { title: "Conversation", lead: "What was said is private. Read it only for a reason.", audio: "Audio", earlier: "Earlier turns" },
};
