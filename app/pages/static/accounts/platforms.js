// The platforms of a login (§2.2) in the groups in which the page lists them, and the pages about the current user.

const THIRD_PARTIES = [
  ["ios_vendor_id", "Apple", "#1d1d1f"],
  ["search_vendor_id", "Google", "#2b5fc7"],
  ["social_network_a", "Facebook", "#1665d8"],
  ["software_vendor_id", "Microsoft", "#00706a"],
  ["photo_network", "Instagram", "#b52a78"],
  ["microblog", "Weibo", "#c2232a"],
  ["im_network_b", "WeChat", "#0b7339"],
  ["im_network_a", "QQ with OpenID", "#1269a8"],
  ["chat_network", "QQ", "#5a4fb0"],
  ["payment_wallet_a", "Alipay", "#1264c6"],
  ["retail_platform", "JD.com", "#b3160e"],
  ["ios_games_service", "Game Center", "#6d3fc4"],
  ["android_games_service", "Play Games", "#196f43"],
];
const OWN = [
  ["email_password", "Email and password"],
  ["email_code", "Email and code"],
  ["phone", "Phone and code"],
  ["name_password", "Name and password"],
  ["device", "Device"],
  ["anonymity", "Anonymous"],
  ["bp_auth_token", "bp_auth token"],
];
const USER = [
  ["email", "Email address"],
  ["password", "Password"],
  ["sessions", "Profiles and sessions"],
];

const OWN_COLOR = "#525f7a";
const entry = ([id, title, color = OWN_COLOR]) => ({ id, title, color });

export const GROUPS = [
  { title: "Third parties", entries: THIRD_PARTIES.map(entry) },
  { title: "This server", entries: OWN.map(entry) },
  { title: "Current user", entries: USER.map(entry), ofUser: true },
];

export const ENTRIES = GROUPS.flatMap(({ entries }) => entries);

export const FIRST = "search_vendor_id";

/** Return the entry with this id, or that of the first one if there is none. */
export const entryOf = (id) => ENTRIES.find((one) => one.id === id) ?? ENTRIES.find((one) => one.id === FIRST);

export const titleOf = (id) => ENTRIES.find((one) => one.id === id)?.title ?? id;
