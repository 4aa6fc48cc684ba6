// Counts the words of each sender, over all its lives and versions.
//
// A message is `SENDER: TEXT`. A question may be one too, or the name of a sender; the answer is
// what this sender has said so far, as JSON.

import * as log from "strowger:log";

/** Words and messages by sender. */
let senders = new Map();

export const version = 1;

export function init({ reason, state, version: form }) {
    if (state === undefined) return;
    if (form !== version) throw new Error(`state of version ${form}`);
    senders = new Map(JSON.parse(decode(state)));
    log.info(`${reason}: goes on with ${senders.size} senders`);
}

export function handle({ kind, text }) {
    const [, sender, said] = /^([^:]+)(?:: ?(.*))?$/s.exec(text) ?? [];
    if (sender === undefined) throw new Refusal("SENDER: TEXT, or SENDER");
    if (said !== undefined) count(sender, said);
    if (kind !== "request") return;
    const tally = senders.get(sender);
    if (tally === undefined) throw new Refusal(`${sender} has said nothing`);
    return tally;
}

export function snapshot() {
    return [...senders];
}

function count(sender, said) {
    if (said === "throw") throw new RangeError(`${sender} said so`);
    const { words, messages } = senders.get(sender) ?? { words: 0, messages: 0 };
    const found = said.match(/[\p{Letter}\p{Number}'-]+/gu) ?? [];
    senders.set(sender, { words: words + found.length, messages: messages + 1 });
}
