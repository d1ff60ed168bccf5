// The texts of money.

export const MONEY_TEXTS = {
  moneyPage: {
    tabs: { orders: "Payments", subscriptions: "Subscriptions", withdrawals: "Withdrawals", mismatches: "Mismatches", webhooks: "Webhooks", ledger: "Ledger" },
    card: "Card", wallet: "Wallet", product: "Product", noProduct: "Without a product", amount: "Amount", status: "Status", platformId: "Id at the platform", user: "User", created: "Created", ends: "Period ends",
    withdrawId: "Id of the app", batchId: "Our id", reason: "Reason", settle: "Settle", settleText: "The platform does not know the result any more. Check its activity there before you state the outcome of the withdrawal.",
    outcome: "Outcome", wasPaid: "It was paid", wasNotPaid: "It was not paid",
    mismatchLead: "Differences between this server and the platforms.", noMismatches: "Everything agrees.", state: "State", resolved: "Settled", openOnly: "Needs somebody", resolvedOnly: "Settled or repaired", repaired: "Repaired",
    resolve: "Mark as settled", resolveText: "Say in the reason what was done. The mismatch stays in the list, and does not need attention any more.", resolvedBy: (name) => `by ${name}`,
    found: "Found", platform: "Platform", kind: "Kind", subject: "Subject", detail: "Detail",
    ledgerLead: "What users own must follow from the entries of the ledger. The check rebuilds it from all entries, and changes nothing.", check: "Check the ledger", checking: "Checking…",
    agrees: "Everything that users own follows from the ledger.", differs: (count) => `${count} ${count === 1 ? "asset differs" : "assets differ"} from the ledger.`, soFar: "Nothing differs so far.",
    incomplete: "Not everything was checked. On the command line, python -m app verify ledger has no limit.",
  },
  webhooksPage: {
    title: "Webhooks", received: "Received", worked: "Processed", source: "Source", status: "Status", event: "Event", delivery: "Delivery", config: "Config", error: "Error", body: "Body", headers: "Headers",
    failed: "The last attempt has failed", replay: "Replay", replayText: "The webhook is processed again, as if it had just arrived. What it has done already is not done twice.", replayed: "It is being processed again.",
  },
  mismatches: {
    missed_event: { title: "A webhook never came", todo: "It is repaired. If there are many, check the webhook's URL and its events at the platform." },
    unreadable_event: { title: "An event of the platform cannot be read", todo: "Find the event by its id at the platform, and sync the payment, order or subscription that it names." },
    missed_entry: { title: "An entry was found by reading back", todo: "It is repaired. If there are many, check the webhook's URL and its events at the platform." },
    amount_differs: { title: "Another amount was paid than was ordered", todo: "Correct the price of the product or of the plan, and refund the difference. An order or a single payment with a card has granted nothing: refund it, or grant the product by hand." },
    refund_refused: { title: "The platform does not make a refund, or only a part of it", todo: "Refund the payment by hand at the platform, or pay the user otherwise. The detail of a part names what is missing: nothing has to be done if it was refunded by hand before." },
    refund_failed: { title: "The platform has accepted a refund and not made it", todo: "Refund the payment by hand at the platform, or pay the user otherwise." },
    payout_unknown: { title: "The platform has forgotten a withdrawal", todo: "Search the platform's activity for the subject, then settle the withdrawal." },
    payout_returned: { title: "The platform has taken back what it had paid", todo: "Tell the app's server: the user has not got the money. Pay with a new id." },
    payout_paid_after_failure: { title: "The platform has paid what it had reported as failed", todo: "Tell the app's server: the user has the money, perhaps twice." },
    payout_settled_otherwise: { title: "The platform reports another result than was settled", todo: "Settled as paid: pay with a new id. Settled as failed: the user has the money, so recover it." },
  },
};
