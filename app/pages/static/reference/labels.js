// The words of the viewer that are in title case, as on all other pages.

export const LABELS = {
  operation: {
    pathParameters: "Path parameters",
    queryParameters: "Query parameters",
    requestBody: "Request body",
    selectedContentType: "Selected content type",
    testRequest: "Test request",
  },
  response: { exampleResponses: "Example responses", noBody: "No body", showSchema: "Show schema" },
  schema: { showSchemaDetails: "Show schema details" },
  actions: { showMore: "Show more" },
  authentication: { optional: "Authentication optional", required: "Authentication required" },
  download: { openapi: "Download OpenAPI document" },
  search: { clear: "Clear search", open: "Open search", results: "Results of the search" },
  navigation: { closeGroup: "Close group", closeMenu: "Close menu", openGroup: "Open group", openMenu: "Open menu" },
};
