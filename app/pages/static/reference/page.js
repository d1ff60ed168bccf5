// The API reference: starts the viewer of the OpenAPI document, with contents, search and links of its own.

import { followLinks, reportWhere } from "./links.js";
import { readDocument } from "./outline.js";
import { showContents } from "./contents.js";
import { showSearch } from "./search.js";
import { LABELS } from "./labels.js";
import { makeReachable } from "./reachable.js";
import { moveStreamLists } from "./streams.js";

const outline = await readDocument("/openapi.json");
const contents = showContents(outline);
showSearch(outline);
// The viewer reads the address when it starts, so that links are made known to it before.
followLinks(outline);

// Disable everything that would load from another host, because the Content-Security-Policy blocks it.
const viewer = Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  servers: [{ url: location.origin }],
  theme: "none",
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  // The contents and the search of the viewer can neither close groups nor order what they find.
  showSidebar: false,
  hideSearch: true,
  hideDarkModeToggle: true,
  // Each operation has examples in the languages of the clients, which were run.
  hiddenClients: true,
  hideModels: true,
  // Its parts lie over each other on a phone.
  hideTestRequestButton: matchMedia("(max-width: 40rem)").matches,
  localization: { locale: "en", translations: LABELS },
  orderSchemaPropertiesBy: "preserve",
  documentDownloadType: "direct",
  // The anchors of the contents are those of the viewer.
  generateTagSlug: ({ name }) => name,
  setPageTitle: ({ title }) => {
    reportWhere(outline, contents.show);
    return title === "Parley" ? "API reference · Parley" : `${title} · API reference · Parley`;
  },
});
reportWhere(outline, contents.show);
addEventListener("hashchange", () => reportWhere(outline, contents.show));
const reference = document.querySelector("#reference");
makeReachable(reference);
moveStreamLists(reference);
document.dispatchEvent(new CustomEvent("viewer", { detail: viewer }));
