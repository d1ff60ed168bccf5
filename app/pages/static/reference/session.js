// The button that logs in a new user, whose session the viewer then sends. Only development servers have it.

const button = document.querySelector(".tools .session");
const status = document.querySelector(".tools [role=status]");

const SHOWN_MS = 12_000;
let hiding;

document.addEventListener("viewer", ({ detail: viewer }) => {
  button.hidden = false;
  button.addEventListener("click", () => useSession(viewer));
});

async function useSession(viewer) {
  button.disabled = true;
  try {
    const user = await newUser();
    viewer.updateConfiguration({ ...viewer.getConfiguration(), authentication: withSession(user.session.session_token) });
    say("Requests are sent as a new user.", copyButton(user.session.session_token));
    button.firstElementChild.textContent = "Use another session";
  } catch (error) {
    say(`No session: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

/** Show a message for a while, and beside it a button if one is given. */
function say(message, ...buttons) {
  status.replaceChildren(message, ...buttons);
  clearTimeout(hiding);
  hiding = setTimeout(() => status.replaceChildren(), SHOWN_MS);
}

/** Return a button that copies the line of a shell after which the examples for curl use the session. */
function copyButton(token) {
  const copy = document.createElement("button");
  copy.type = "button";
  copy.textContent = "Copy “export SESSION=…”";
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(`export SESSION=${token}`);
      say("Copied. Paste it into your shell, and the examples use this session.");
    } catch {
      say("This browser cannot copy here.");
    }
  });
  return copy;
}

async function newUser() {
  const response = await fetch("/bp/user/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ device: { id: `docs-${crypto.randomUUID()}` } }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer.user;
}

function withSession(token) {
  return { preferredSecurityScheme: "session", securitySchemes: { session: { value: token } } };
}
