/** Encodes data for JSON: text as it is, bytes in base64. */
export function holding(data: string | Uint8Array): { text: string } | { base64: string } {
  if (typeof data === "string") return { text: data };
  let letters = "";
  // A number of arguments that every engine accepts.
  for (let at = 0; at < data.length; at += 8192) {
    letters += String.fromCharCode(...data.subarray(at, at + 8192));
  }
  return { base64: btoa(letters) };
}
