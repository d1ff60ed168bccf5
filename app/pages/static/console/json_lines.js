// Where the values of a JSON text are, and where the text is no JSON. Pure functions.

const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const DEPTH = 100;

/** Returns `{lines, fault}`: the line of each path, such as `chat.options.0`, and `{line, message}` if it is no JSON. */
export function linesOf(text) {
  const lines = new Map();
  let [at, line] = [0, 1];
  const stop = (message) => {
    throw new SyntaxError(message);
  };
  const skip = () => {
    for (; at < text.length && " \t\r\n".includes(text[at]); at++) if (text[at] === "\n") line += 1;
  };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found) at += found.length;
    return found;
  };
  const members = (path, end, depth, one) => {
    at += 1;
    skip();
    for (let index = 0; text[at] !== end; index++) {
      if (index > 0) {
        if (text[at] !== ",") stop(`a comma or ${end} is expected`);
        at += 1;
        skip();
      }
      value(join(path, one(index)), depth + 1);
      skip();
    }
    at += 1;
  };
  const name = () => {
    const key = take(STRING) ?? stop("a name in quotation marks is expected");
    skip();
    if (text[at] !== ":") stop("a colon is expected after a name");
    at += 1;
    return JSON.parse(key);
  };
  const value = (path, depth) => {
    skip();
    lines.set(path, line);
    if (depth > DEPTH) stop("is nested too deeply");
    if (text[at] === "{") members(path, "}", depth, name);
    else if (text[at] === "[") members(path, "]", depth, String);
    else if (!take(STRING) && !take(SCALAR)) stop("a value is expected");
  };
  try {
    value("", 0);
    skip();
    if (at < text.length) stop("nothing is expected after the value");
  } catch (error) {
    return { lines, fault: { line, message: error.message } };
  }
  return { lines, fault: null };
}

const join = (path, name) => (path ? `${path}.${name}` : name);

/** Returns the line of a fault: that of its path or, if something is missing there, of the value around it. */
export function lineOf(lines, path) {
  const normal = path.replace(/\[(\d+)\]/g, ".$1");
  for (let part = normal; part; part = part.slice(0, Math.max(0, part.lastIndexOf(".")))) if (lines.has(part)) return lines.get(part);
  return lines.get("") ?? 1;
}
