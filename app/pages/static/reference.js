"use strict";

// Disable everything that would load from another host, because the Content-Security-Policy blocks it.
Scalar.createApiReference("#reference", {
  url: "/openapi.json",
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
