// The texts of the trials of sign-in platforms and of prices.

const many = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
const UNITS = { Y: "year", M: "month", W: "week", D: "day" };

export const TRIAL_TEXTS = {
  signInTrial: {
    lead: "Paste the fields that an app sends when somebody logs in with this platform. They are verified once with the draft as it is now, as in a login. Nobody is logged in, and nothing is stored.",
    codes: "A code can be used only once: after this, the app cannot log in with it.",
    required: "required", optional: "optional", oneOf: "one of these is required",
    run: "Verify once", running: "Verifying…", confirmed: (provider, ms) => `The platform (${provider}) has confirmed the identity after ${ms} ms.`,
    refused: "The proof is refused", failed: "The platform cannot verify it", claimed: "Only the app claims this id. The draft asks for no proof, so anybody can use any id.",
    id: "Id of the user", name: "Name", noName: "Not reported", email: "Email", noEmail: "None that the platform has verified", picture: "Picture", noPicture: "Not reported",
    checks: "What was checked", check: "Check", seen: "Seen", allowed: "Allowed", noFields: "The draft must be valid before a proof can be verified:",
  },
  priceTrial: {
    lead: "Each payment platform that the draft names is asked what a payer would pay. The price of a subscription is read. Any other product is ordered, but never paid: payments with a card are cancelled at once, and nobody approves the orders of the wallet. Nothing is stored here.",
    run: "Ask the platforms", running: "Asking…", label: "What a payer would pay",
    platforms: { cardpay: "Card", walletpay: "Wallet" },
    platform: "Platform", countries: "Countries", everywhere: "All", others: "All others", found: "A payer pays", draft: "The draft says", result: "Result", elapsed: "Duration",
    nothing: "Unknown", noPrice: "No price", agrees: "Agrees", differs: "Differs", failed: "Failed", accepted: "Accepted", payment: "The payment was cancelled at once.", order: "Nobody will approve this order.",
    none: "The draft names no payment platform, so nobody can buy the product.",
    leftOut: (count) => `${many(count, "more price")} of the draft ${count === 1 ? "was" : "were"} not tried: at most 20 are, and a platform that does not answer is asked once.`,
    /** Returns a period such as `P7D` in words: `7 days`. */
    period: (text) => [...text.matchAll(/(\d+)([YMWD])/g)].map(([, count, unit]) => many(Number(count), UNITS[unit])).join(" and "),
    every: (amount, period) => `${amount} every ${period.replace(/^1 /, "")}`, trial: (length, amount) => (amount ? `, after a trial of ${length} for ${amount}` : `, after a free trial of ${length}`), noAmount: "No fixed amount",
  },
};
