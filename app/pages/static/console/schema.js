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
  if (kindsOf(schema)) return schema.type === "array" ? "references" : "reference";
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

const SHORTS = /\b(cors|url|urls|id|ids|ip|api|html|json|tls|sms|tts|stt|llm)\b/gi;
const LONGS = { tts: "Speech", stt: "Recognition", llm: "Language model", urls: "URLs", ids: "ids", id: "id" };

/** Returns what a form calls a field: the title that its model gives it, or its name in words. */
export function labelOf(name, schema) {
  const words = name.replaceAll("_", " ");
  const title = schema.title ?? words;
  const isOwn = title.toLowerCase() !== words && !schema.properties;
  return isOwn ? title : (words[0].toUpperCase() + words.slice(1)).replace(SHORTS, (short) => LONGS[short.toLowerCase()] ?? short.toUpperCase());
}

/** Returns the kinds of configs that a field names, or null. */
export const kindsOf = (schema) => schema["x-config-kinds"] ?? (schema["x-config-kind"] ? [schema["x-config-kind"]] : null);

/** Returns whether a value is set to something else than the default. */
export const differs = (schema, value) =>
  value !== undefined && JSON.stringify(value) !== JSON.stringify(schema.default ?? (schema.type === "array" ? [] : null));

const has = (text, words) => words.every((word) => text.includes(word));

/** Returns how well a field itself fits a search: 2 if all words are in its name or title, 1 if they are in its description, else 0. */
export function ownFit(name, schema, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const names = `${name} ${labelOf(name, schema)}`.toLowerCase();
  return has(names, words) ? 2 : has(`${names} ${(schema.description ?? "").toLowerCase()}`, words) ? 1 : 0;
}

/** Returns how well a field or one within it fits a search, as `ownFit`. */
export function fitOf(name, schema, defs, search) {
  const own = ownFit(name, schema, search);
  if (own) return own;
  const inner = schema.type === "array" && schema.items ? resolved(schema.items, defs) : schema;
  return Object.entries(inner.properties ?? {}).some(([each, property]) => fitOf(each, resolved(property, defs), defs, search)) ? 1 : 0;
}

/** Returns `value` without the secrets that were typed: each is as in `stored` again. */
export function withoutSecrets(schema, defs, value, stored) {
  const found = resolved(schema, defs);
  if (found.writeOnly) return typeof value === "string" ? stored : value;
  if (Array.isArray(value)) return found.items ? value.map((each, index) => withoutSecrets(found.items, defs, each, stored?.[index])) : value;
  if (value === null || typeof value !== "object") return value;
  const others = Object.values(found.patternProperties ?? {})[0] ?? found.additionalProperties;
  const entries = Object.entries(value).map(([name, each]) => {
    const inner = found.properties?.[name] ?? others;
    return [name, typeof inner === "object" ? withoutSecrets(inner, defs, each, stored?.[name]) : each];
  });
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined));
}
