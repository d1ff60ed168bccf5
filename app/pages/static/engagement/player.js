// The users of the page: one at the keyboard, and others who play against that one.

import { succeeded } from "../accounts/exchanges.js";

const NAMES = ["You", "Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Frances", "Ken", "Radia"];

/** Log in all users and return them as `{name, uid, token, score}`, the one at the keyboard first. Empty: it failed. */
export async function players(exchanges, entry) {
  const kept = entry.read();
  if (kept.players && (await isLoggedIn(exchanges, kept.players[0]))) return kept.players;
  const made = await Promise.all(NAMES.map((name) => logIn(exchanges, name)));
  if (made.includes(null)) return [];
  entry.write({ players: made });
  return made;
}

async function isLoggedIn(exchanges, { token }) {
  return succeeded(await exchanges.send({ name: "Read the user", method: "GET", path: "/bp/user/me", token, aside: true }));
}

async function logIn(exchanges, name) {
  const id = `player-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const exchange = await exchanges.send({ name: `Log in ${name}`, path: "/bp/user/login", body: { device: { id } }, aside: true });
  if (!succeeded(exchange)) return null;
  const { uid, session } = exchange.answer.user;
  return { name, uid, token: session.session_token, score: 0 };
}
