// Why an attempt failed, in words: what happened, and what its reader can do about it.

import { development } from "../shared/bar.js";

const AGAIN = "Try again in a moment.";
const ANOTHER = "Choose another strategy in the settings.";

// A pattern of the message, what happened, what an operator can do about it, and what the user of an app can do.
const REASONS = [
  [/ answered 40[13]\b/, "The vendor refused the key.", "Check the key of the vendor account.", ANOTHER],
  [/ answered 404\b/, "The vendor does not know this model or address.", "Check the model and the base_url in the config.", ANOTHER],
  [/ answered 429\b|limits the rate/, "The vendor's rate limit is reached.", "Wait, or raise the limit at the vendor.", AGAIN],
  [/ answered 5\d\d\b/, "The vendor had an internal error.", "This usually passes. Fallbacks help meanwhile.", AGAIN],
  [/ answered 4\d\d\b/, "The vendor refused the request.", "Check the options in the strategy's config.", ANOTHER],
  [/not reached|cannot be reached/, "The vendor could not be reached.", "Check the base_url, and that the vendor is up.", AGAIN],
  [/was lost|broke off/, "The vendor broke off in the middle.", "This usually passes.", AGAIN],
  [/was silent for/, "The vendor stopped sending.", "This usually passes. The strategy's between_s sets how long a pause may be.", AGAIN],
  [/had no output within|had no result within|did not answer within/, "The vendor took too long.", "The strategy's first_output_s sets how long it may take.", AGAIN],
  [/empty response|no audio|only silence/, "The vendor sent nothing that can be used.", "Try again, or another model.", AGAIN],
  [/too long|context/, "The conversation is too long for the model.", "Use a model with a larger context.", "Start a new conversation."],
  [/does not exist/, "The config names something that does not exist.", "Correct the config.", ANOTHER],
];
const TYPES = {
  config_invalid: ["The config of this strategy is invalid.", "Correct it as the message says.", ANOTHER],
  backend_unavailable: ["The vendor failed.", "The message says how.", AGAIN],
  invalid_parameter: ["The server refused the request.", "The message names the field.", "The message says why."],
  api_rate_limit: ["A rate limit of the server is reached.", AGAIN, AGAIN],
  "account.invalid_session": ["The session has ended.", "Log in again.", "Reload the page."],
  connection_lost: ["The connection was lost and could not be restored.", "Check that the server is running.", "Check that you are online."],
};
const OTHER = ["It failed.", "The message says why.", AGAIN];

/** Return `{text, advice}` for a failed attempt, or for the error that ended a stream. */
export function reasonOf({ error_type = "", message = "" }) {
  const type = error_type.replaceAll(" ", "_");
  const [text, forOperators, forUsers] = REASONS.find(([pattern]) => pattern.test(message))?.slice(1) ?? TYPES[type] ?? OTHER;
  return { text, advice: development ? forOperators : forUsers };
}
