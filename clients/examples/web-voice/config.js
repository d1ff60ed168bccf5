// The server and the app of this page. The page's address cannot change them: a link that names another server would
// have the user's session sent there.
export const config = {
  url: "http://127.0.0.1:8080",
  app: "default",
  signKey: null, // The app's key for signatures, which production requires. In a page it is no secret.
  strategy: "local",
  language: "en-US",
};
