// Which page each address shows.

import { Config } from "./config.js";
import { Configs } from "./configs.js";
import { Conversation } from "./conversation.js";
import { Engagement } from "./engagement.js";
import { Jobs } from "./jobs.js";
import { Money } from "./money.js";
import { Operations } from "./operations.js";
import { Order } from "./order.js";
import { Overview } from "./overview.js";
import { Stream } from "./stream.js";
import { Streams } from "./streams.js";
import { TEXTS } from "./texts.js";
import { User } from "./user.js";
import { Ledger } from "./user_ledger.js";
import { Receipt } from "./user_receipt.js";
import { Users } from "./users.js";

/**
 * The addresses of each area, in the order of the menu. `:` is any text, and `:tab` one of the tabs of the area. The
 * first address that fits decides.
 */
const PAGES = {
  overview: [["", Overview]],
  users: [["", Users], [": :", User], [": : orders :", Order], [": : conversations :", Conversation], [": : ledger", Ledger], [": : receipt", Receipt]],
  configs: [["", Configs], [": : :", Config]],
  streams: [["", Streams], [":tab", Streams], [": :", Stream]],
  money: [["", Money], [":tab", Money], ["webhooks :", Money]],
  engagement: [["", Engagement], [":tab", Engagement], ["boards : :", Engagement], ["boards : : :", Engagement]],
  jobs: [["", Jobs], [":tab", Jobs], ["held :", Jobs]],
  operations: [["", Operations], [":tab", Operations]],
};
const TABS = {
  streams: TEXTS.streamsPage.tabs,
  money: TEXTS.moneyPage.tabs,
  engagement: TEXTS.engagementPage.tabs,
  jobs: TEXTS.jobsPage.tabs,
  operations: TEXTS.operationsPage.tabs,
};

export const AREAS = Object.keys(PAGES);

/** Returns the page of an address, or `undefined` if there is none. */
export function pageOf({ area, parts }) {
  if (!AREAS.includes(area)) return undefined;
  const fits = (step, part) => step === ":" || (step === ":tab" ? Object.hasOwn(TABS[area], part) : step === part);
  const found = PAGES[area].find(([pattern]) => {
    const steps = pattern.split(" ").filter(Boolean);
    return steps.length === parts.length && steps.every((step, index) => fits(step, parts[index]));
  });
  return found?.[1];
}
