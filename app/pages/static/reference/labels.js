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
  // The dialog that sends a request.
  apiClient: {
    authSelector: { selectedType: "Selected: {type}", selectType: "Select authentication" },
    dataTableInput: { clearValue: "Clear value", hidePassword: "Hide value", showPassword: "Show value" },
    header: { closeClient: "Close" },
    requestBlock: { queryParameters: "Query parameters", requestBody: "Request body" },
    requestBody: { noBody: "No body", binaryFile: "Binary file", selectFile: "Select file" },
    requestCodeSnippet: { codeSnippet: "Code" },
    requestParams: { clearAll: "Clear all: {title}" },
    requestTableTooltip: { moreInformation: "More information" },
    responseBlock: { requestHeaders: "Request headers", responseHeaders: "Response headers" },
    responseBodyDownload: { body: "Response body", download: "Download response body" },
    responseEmpty: { sendRequest: "Send request" },
  },
};
