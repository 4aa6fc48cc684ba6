// Defines `strip`, which removes the types from TypeScript.
import { transform } from "sucrase/dist/esm/index.js";
import { parse } from "sucrase/dist/esm/parser/index.js";
import { ContextualKeyword } from "sucrase/dist/esm/parser/tokenizer/keywords.js";
import { TokenType } from "sucrase/dist/esm/parser/tokenizer/types.js";

const options = { transforms: ["typescript"], disableESTransforms: true };

globalThis.strip = (code) => {
  try {
    // Both are rare, and the check parses the code a second time.
    if (/@|\b(?:namespace|module)\b/.test(code)) refuse(code);
    return transform(code, options).code;
  } catch (error) {
    // Point at the code instead of the parser.
    if (error.loc) error.stack = `    at code:${error.loc.line}:${error.loc.column}\n`;
    throw error;
  }
};

/** Refuses decorators, which sucrase does not compile, and namespaces, which it drops. */
function refuse(code) {
  const { tokens } = parse(code, false, true, false);
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token.type === TokenType.at) {
      throw unsupported(code, token.start, "decorators are not run: call the function instead");
    }
    if (token.type === TokenType._declare) {
      at = endOfAmbient(tokens, at);
    } else if (bodyOfNamespace(tokens, at) > 0) {
      throw unsupported(code, token.start, "a namespace is not run: use an object, or `declare"
        + " namespace` if it holds only types");
    }
  }
}

/** Returns the index of the body of the namespace that starts here; 0 if there is none. */
function bodyOfNamespace(tokens, at) {
  const { contextualKeyword, isType } = tokens[at];
  const { _namespace, _module } = ContextualKeyword;
  if (!isType || (contextualKeyword !== _namespace && contextualKeyword !== _module)) return 0;
  let next = at + 1;
  if (tokens[next].type !== TokenType.name) return 0;
  while (tokens[next + 1].type === TokenType.dot) next += 2;
  return tokens[next + 1].type === TokenType.braceL ? next + 1 : 0;
}

/** Returns the last token of a `declare namespace`; `at` if another declaration starts here. */
function endOfAmbient(tokens, at) {
  let end = bodyOfNamespace(tokens, at + 1);
  if (end === 0) return at;
  for (let depth = 0; end < tokens.length; end += 1) {
    if (tokens[end].type === TokenType.braceL) depth += 1;
    if (tokens[end].type === TokenType.braceR && (depth -= 1) === 0) return end;
  }
  return at;
}

function unsupported(code, start, why) {
  const before = code.slice(0, start).split("\n");
  const loc = { line: before.length, column: before[before.length - 1].length + 1 };
  const error = new SyntaxError(`${why} (${loc.line}:${loc.column})`);
  error.loc = loc;
  return error;
}
