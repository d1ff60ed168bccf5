"use strict";

// The viewer does not show `x-events`. It reports schemas with `null` that only these refer to as invalid, in the console.
async function fetchWithoutEvents(input, options) {
  const response = await fetch(input, options);
  if (new URL(response.url).pathname !== "/openapi.json") return response;
  const description = await response.json();
  for (const path of Object.values(description.paths)) {
    for (const operation of Object.values(path)) delete operation["x-events"];
  }
  return Response.json(description);
}

// Disable everything that would load from another host, because the Content-Security-Policy blocks it.
Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  fetch: fetchWithoutEvents,
  servers: [{ url: location.origin }],
  theme: "default",
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve",
  documentDownloadType: "direct",
  // Without this, one-line summaries cut off underscores, which are common in error types.
  customCss: ".markdown.markdown-summary { line-height: 1.5 }",
});
