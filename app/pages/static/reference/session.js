// The button that logs in a new user, whose session the viewer then sends. Only development servers have it.

const button = document.querySelector(".tools .session");
const status = document.querySelector(".tools [role=status]");

const SHOWN_MS = 8_000;
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
    say(`Requests are sent as the new user ${user.uid}.`);
    button.firstElementChild.textContent = "Use another session";
  } catch (error) {
    say(`No session: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

/** Show a message below the button for a while. */
function say(message) {
  status.textContent = message;
  clearTimeout(hiding);
  hiding = setTimeout(() => (status.textContent = ""), SHOWN_MS);
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
