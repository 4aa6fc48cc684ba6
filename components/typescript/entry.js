// Defines `strip`, which takes the types away from TypeScript.
import { transform } from "sucrase/dist/esm/index.js";

const options = { transforms: ["typescript"], disableESTransforms: true };

globalThis.strip = (code) => transform(code, options).code;
