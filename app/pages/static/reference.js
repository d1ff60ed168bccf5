"use strict";

// Nothing here may ask another host: the page's Content-Security-Policy would refuse it.
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
  documentDownloadType: "json",
  // Without this its one-line summaries lose their underscores, which error types are full of.
  customCss: ".markdown.markdown-summary { line-height: 1.5 }",
});
