// JSON Schema as the server writes it, for forms. Pure functions.

/** Returns `schema` with its `$ref` replaced, and without the alternative `null`. */
export function resolved(schema, defs) {
  let found = schema;
  for (let depth = 0; depth < 8; depth++) {
    if (found.$ref) found = { ...defs[found.$ref.split("/").pop()], ...without(found, "$ref") };
    else if (found.allOf?.length === 1) found = { ...found.allOf[0], ...without(found, "allOf") };
    else {
      const others = found.anyOf?.filter((each) => each.type !== "null");
      if (others?.length !== 1) break;
      found = { ...others[0], ...without(found, "anyOf") };
    }
  }
  return found;
}

const without = (object, name) => Object.fromEntries(Object.entries(object).filter(([key]) => key !== name));

/** Returns how a form shows values of a resolved schema. */
export function widgetOf(schema) {
  if (schema.writeOnly) return "secret";
  if (schema.enum) return "choice";
  if (schema.type === "object" && schema.properties) return "object";
  if (schema.type === "array" && schema.items && !schema.items.type?.startsWith?.("arr")) return "list";
  return { boolean: "check", integer: "number", number: "number", string: "text" }[schema.type] ?? "json";
}

/** Returns `value` with `next` at `key`; `undefined` removes the key. */
export function withKey(value, key, next) {
  const changed = { ...value };
  if (next === undefined) delete changed[key];
  else changed[key] = next;
  return changed;
}

/** Lists the changed leaves of two values: `{path, before, after}`, each as JSON. */
export function differencesOf(before, after, path = "") {
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => differencesOf(before[name], after[name], path ? `${path}.${name}` : name));
  }
  const [was, becomes] = [before, after].map((value) => (value === undefined ? undefined : JSON.stringify(value, null, 1)));
  return was === becomes ? [] : [{ path, before: was, after: becomes }];
}

/** Returns the messages of the faults at `path` or, with `below`, under it. */
export function faultsAt(faults, path, below = false) {
  const normal = (text) => text.replace(/\[(\d+)\]/g, ".$1");
  return faults.filter((fault) => normal(fault.path) === path || (below && normal(fault.path).startsWith(`${path}.`)));
}
