// The button that logs in a new user, whose session the viewer then sends. Only development servers have it.

const button = document.querySelector(".tools .session");
const status = document.querySelector(".tools [role=status]");

document.addEventListener("viewer", ({ detail: viewer }) => {
  button.hidden = false;
  button.addEventListener("click", () => useSession(viewer));
});

async function useSession(viewer) {
  button.disabled = true;
  try {
    const user = await newUser();
    viewer.updateConfiguration({ ...viewer.getConfiguration(), authentication: withSession(user.session.session_token) });
    show("Session in use", `Requests are sent as the new user ${user.uid}.`);
    button.classList.add("used");
  } catch (error) {
    show("No session", `No session: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

/** The button shows the outcome. The rest is read to screen readers, and shown when the button is pointed at. */
function show(name, outcome) {
  button.querySelector("span").textContent = name;
  button.title = `${outcome} Click for another user.`;
  status.textContent = outcome;
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
