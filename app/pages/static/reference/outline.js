// The groups, sections and operations of the OpenAPI document.

const METHODS = new Set(["get", "put", "post", "delete", "patch", "head"]);
const FORM = / \((?:S2S|webhook)\)$/;

/** Return the groups of the document, each with its sections, each with its operations. */
export async function readDocument(url) {
  const response = await fetch(url);
  return outlineOf(await response.json());
}

function outlineOf(document) {
  const operations = operationsOf(document);
  const tags = new Map(document.tags.map((tag) => [tag.name, tag]));
  return document["x-tagGroups"].map((group) => ({
    title: group.name,
    sections: group.tags.map((name) => ({
      title: tags.get(name)["x-displayName"],
      anchor: `tag/${name}`,
      operations: operations.filter((operation) => operation.tag === name),
    })),
  }));
}

function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => METHODS.has(method))
      .map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        tag: operation.tags[0],
        // The group already says who calls it.
        title: operation.summary.replace(FORM, ""),
        description: operation.description ?? "",
        // The viewer's own anchor. The end of it, method and path, is a link of its own.
        anchor: `tag/${operation.tags[0]}/${method.toUpperCase()}${path}`,
      })),
  );
}

/** Return all operations, each with its section and group. */
export function listed(outline) {
  return outline.flatMap((group) =>
    group.sections.flatMap((section) => section.operations.map((operation) => ({ ...operation, section, group }))),
  );
}
