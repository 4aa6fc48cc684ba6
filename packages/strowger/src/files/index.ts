import { holding } from "../base64.js";
import { cancelled } from "../delivery.js";
import { MessageError } from "../error.js";
import type { ActorRef, AskOptions } from "../protocol.js";

/** The kind of a directory entry; `special` is a FIFO, a socket or a device. */
export type EntryKind = "file" | "directory" | "link" | "special";

/** A directory entry. `size`, `modified_ms` and `links` are present only if requested. */
export interface FileEntry {
  /** The name as text, with `\ufffd` for anything that is not UTF-8. */
  readonly name: string;
  /** The path to use if the name cannot serve as one, for example because it is not UTF-8. */
  readonly uri?: string;
  readonly kind: EntryKind;
  readonly size?: number;
  readonly modified_ms?: number;
  readonly links?: number;
}

/**
 * A directory and everything below it. `cut` is `true` if it contains more entries than the reply,
 * and `cut_by` is the limit that cut it, or `unreadable`.
 */
export interface FileTree {
  readonly name: string;
  readonly uri?: string;
  readonly kind: EntryKind;
  readonly entries?: readonly FileTree[];
  readonly cut?: boolean;
  readonly cut_by?: string;
  /** For the requested directory, the limits at which the tree was cut, with advice. */
  readonly cuts?: readonly FileTreeCut[];
}

/** A limit at which a tree was cut: `depth`, `page` or `scan`. */
export interface FileTreeCut {
  readonly by: string;
  readonly limit: number;
  readonly remedy: string;
}

/** A matching entry, with its `kind` in a search by name, or a matching line in a file. */
export interface FileMatch {
  readonly path: string;
  readonly uri?: string;
  readonly kind?: EntryKind;
  readonly line?: number;
  readonly text?: string;
}

/**
 * A file or directory that was not fully searched; `why` is the field of {@link FilesSkipped} that
 * counts it.
 */
export interface SkippedPath {
  readonly path: string;
  readonly uri?: string;
  readonly why: string;
}

/** Counts of what a search skipped, and the first paths. */
export interface FilesSkipped {
  readonly binary: number;
  readonly long_lines: number;
  readonly deep: number;
  readonly unreadable: number;
  readonly links: number;
  readonly special: number;
  readonly paths: readonly SkippedPath[];
}

/**
 * The result of a search. If a limit ended it early, `cut` is the name of the limit, `limit` its
 * value and `remedy` advice.
 */
export interface FilesFound {
  readonly matches: readonly FileMatch[];
  readonly files: number;
  readonly skipped?: FilesSkipped;
  readonly cut?: string;
  readonly limit?: number;
  readonly remedy?: string;
}

/** A replacement in a text. `old` must occur exactly once, unless `all` is set. */
export interface FileChange {
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

/**
 * The way to replace a file: overwrite it (`inplace`), replace it with a new file (`atomic`), or
 * with a new file that is synced to the disk (`durable`).
 */
export type WriteMode = "inplace" | "atomic" | "durable";

/** Counters of one verb. */
export interface VerbUsage {
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  readonly octets: number;
}

/** Stats of a files actor, and the use of its quota. */
export interface FilesUsage {
  readonly octets: number;
  readonly octets_limit: number;
  readonly entries: number;
  readonly entries_limit: number;
  /** Number of directory entries that were looked at. */
  readonly looked: number;
  readonly verbs: Readonly<Record<string, VerbUsage>>;
}

type Holding = { readonly path: string; readonly text?: string; readonly base64?: string };
type Listed = { readonly entries: readonly FileEntry[]; readonly more: boolean };
type Page = {
  readonly path: string;
  readonly after?: string;
  readonly most?: number;
  readonly details?: boolean;
  readonly order?: ListOrder;
};

/** A range of lines: from a line on, the first `head` of them, or the last `tail`. */
export interface LineRange {
  /** The number of the first line, counted from 1. */
  readonly from?: number;
  readonly head?: number;
  readonly tail?: number;
}

/** The order of a list. `size` lists the largest files first, on a single page. */
export type ListOrder = "name" | "size";

/** One of several files: its text, its bytes if they are not text, or the error. */
export interface FileRead {
  readonly text?: string;
  readonly base64?: string;
  readonly error?: { readonly code: string; readonly message: string };
}

/** The messages of a files actor. */
export type FilesProtocol = {
  read: {
    payload: { readonly path: string; readonly offset?: number; readonly length?: number };
    reply: Uint8Array;
  };
  "read-lines": { payload: { readonly path: string } & LineRange; reply: Uint8Array };
  "read-many": { payload: { readonly paths: readonly string[] }; reply: readonly FileRead[] };
  media: { payload: { readonly path: string }; reply: { mime: string; base64: string } };
  write: { payload: Holding & { readonly mode?: WriteMode } };
  append: { payload: Holding };
  begin: { payload: { readonly path: string }; reply: { part: string } };
  commit: {
    payload: {
      readonly part: string;
      readonly path: string;
      readonly length: number;
      readonly durable?: boolean;
    };
  };
  edit: {
    payload: {
      readonly path: string;
      readonly changes: readonly FileChange[];
      readonly dry_run?: boolean;
    };
    reply: { places: number; diff: string };
  };
  list: { payload: Page; reply: Listed };
  tree: {
    payload: {
      readonly path: string;
      readonly depth?: number;
      readonly exclude?: readonly string[];
    };
    reply: FileTree;
  };
  search: {
    payload: {
      readonly path: string;
      readonly names?: string;
      readonly exclude?: readonly string[];
      readonly text?: string;
      readonly most?: number;
    };
    reply: FilesFound;
  };
  stat: { payload: { readonly path: string }; reply: FileEntry };
  make: { payload: { readonly path: string } };
  rename: { payload: { readonly from: string; readonly to: string; readonly replace?: boolean } };
  delete: { payload: { readonly path: string; readonly recursive?: boolean } };
  root: { reply: { path: string; uri?: string; read_only: boolean; file: number } };
  usage: { reply: FilesUsage };
};

/**
 * A connection to the node that has the files actor, or a system of this process with a stand-in.
 */
export type FilesPlace =
  | { actor(at: string): ActorRef<FilesProtocol> }
  | { find(path: string): ActorRef<FilesProtocol> | undefined };

/** Options of reading a file in pieces. */
export interface ChunkOptions extends AskOptions {
  /** The offset of the first byte to read. Default: 0. */
  readonly from?: number;
  /** Size of a piece in bytes. Default: 262 144. */
  readonly chunk?: number;
}

/** Access to the files below one directory, through a files actor. */
export interface Files {
  /** The files actor itself. */
  readonly actor: ActorRef<FilesProtocol>;
  /** Reads a whole file. */
  read(path: string, options?: ChunkOptions): Promise<Uint8Array>;
  /** Reads a whole file as text; rejects with `bad-request` if it is not UTF-8. */
  readText(path: string, options?: ChunkOptions): Promise<string>;
  /** Reads lines of a file of any size: all, the first, the last, or a range. */
  readLines(path: string, options?: AskOptions & LineRange): Promise<string>;
  /** Reads a file piece by piece, a few pieces ahead of the reader. The file may exceed memory. */
  chunks(path: string, options?: ChunkOptions): AsyncIterableIterator<Uint8Array>;
  /**
   * Writes a whole file from text, bytes or an iterable of pieces. Pieces become a file at their
   * end, unless `mode` is `inplace`: up to 256 KiB in one message, more in a temporary file that
   * the node puts in the place of the file. Both keep its mode, owner and attributes, and follow a
   * link.
   */
  write(path: string, data: FileData, options?: WriteOptions): Promise<void>;
  /** Appends to a file. */
  append(path: string, data: string | Uint8Array, options?: AskOptions): Promise<void>;
  /** Replaces text in a file: makes all of the changes, or none. */
  edit(
    path: string,
    changes: readonly FileChange[],
    options?: AskOptions & { readonly dryRun?: boolean },
  ): Promise<{ readonly places: number; readonly diff: string }>;
  /** Lists a directory: by name completely, by size one page with the largest files first. */
  list(path?: string, options?: AskOptions & ListOptions): AsyncIterableIterator<FileEntry>;
  tree(
    path?: string,
    options?: AskOptions & { readonly depth?: number; readonly exclude?: readonly string[] },
  ): Promise<FileTree>;
  search(
    what: {
      readonly path?: string;
      readonly names?: string;
      /**
       * Files and directories to exclude, with everything below them: globs, or names at every
       * level.
       */
      readonly exclude?: readonly string[];
      readonly text?: string;
    },
    options?: AskOptions & { readonly most?: number },
  ): Promise<FilesFound>;
  stat(path: string, options?: AskOptions): Promise<FileEntry>;
  /** Creates a directory and its missing parents. */
  make(path: string, options?: AskOptions): Promise<void>;
  rename(
    from: string,
    to: string,
    options?: AskOptions & { readonly replace?: boolean },
  ): Promise<void>;
  delete(path: string, options?: AskOptions & { readonly recursive?: boolean }): Promise<void>;
  usage(options?: AskOptions): Promise<FilesUsage>;
}

/** Options of listing a directory. */
export interface ListOptions {
  /** `true` to include sizes and times. */
  readonly details?: boolean;
  readonly order?: ListOrder;
}

/** The data to write. */
export type FileData = string | Uint8Array | AsyncIterable<string | Uint8Array>;

/** Options of a write. The default mode is `inplace`, for pieces `atomic`. */
export interface WriteOptions extends AskOptions {
  readonly mode?: WriteMode;
}

const CHUNK = 256 * 1024;
/** Number of pieces to request ahead. */
const AHEAD = 4;

/**
 * Returns the files that an actor of a node has access to, at `@(tools/NAME)`.
 *
 * @example
 * await using node = await connect("/run/strowger/gateway.sock");
 * const text = await files(node).readText("note.txt");
 *
 * @throws MessageError `unknown-target` if a system of this process has no such actor.
 */
export function files(place: FilesPlace, name = "files"): Files {
  const actor = found(place, `tools/${name}`);
  const chunks = (path: string, options: ChunkOptions = {}) => pieces(actor, path, options);
  const read = async (path: string, options?: ChunkOptions): Promise<Uint8Array> => {
    const all: Uint8Array[] = [];
    for await (const piece of chunks(path, options)) all.push(piece);
    return joined(all);
  };
  return {
    actor,
    read,
    readText: async (path, options) => text(path, await read(path, options)),
    readLines: async (path, { from, head, tail, ...options } = {}) => {
      const lines = {
        ...(from === undefined ? {} : { from }),
        ...(head === undefined ? {} : { head }),
        ...(tail === undefined ? {} : { tail }),
      };
      return text(path, await actor.ask("read-lines", { path, ...lines }, options));
    },
    chunks,
    write: (path, data, options = {}) => write(actor, path, data, options),
    append: (path, data, options) => actor.ask("append", { path, ...holding(data) }, options),
    edit: (path, changes, options = {}) =>
      actor.ask("edit", { path, changes, dry_run: options.dryRun ?? false }, options),
    list: (path = "", options = {}) => entries(actor, path, options),
    tree: (path = "", { depth, exclude = [], ...options } = {}) => {
      const levels = depth === undefined ? {} : { depth };
      return actor.ask("tree", { path, exclude, ...levels }, options);
    },
    search: ({ path = "", ...what }, options = {}) => {
      const most = options.most === undefined ? {} : { most: options.most };
      return actor.ask("search", { path, ...what, ...most }, options);
    },
    stat: (path, options) => actor.ask("stat", { path }, options),
    make: (path, options) => actor.ask("make", { path }, options),
    rename: (from, to, options = {}) =>
      actor.ask("rename", { from, to, replace: options.replace ?? false }, options),
    delete: (path, options = {}) =>
      actor.ask("delete", { path, recursive: options.recursive ?? false }, options),
    usage: (options) => actor.ask("usage", undefined, options),
  };
}

function found(place: FilesPlace, path: string): ActorRef<FilesProtocol> {
  if ("actor" in place) return place.actor(path);
  const actor = place.find(path);
  if (actor === undefined) {
    throw new MessageError("unknown-target", `no actor at ${path}`);
  }
  return actor;
}

async function* pieces(
  actor: ActorRef<FilesProtocol>,
  path: string,
  { from = 0, chunk = CHUNK, ...options }: ChunkOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  let offset = from;
  const ask = (): Promise<Uint8Array> => {
    const piece = actor.ask("read", { path, offset, length: chunk }, options);
    // If the loop is left early, nobody awaits the pieces that were requested ahead.
    piece.catch(() => {});
    offset += chunk;
    return piece;
  };
  // The length of the first piece tells whether there are more.
  const first = await ask();
  yield first;
  if (first.length < chunk) return;
  const asked = Array.from({ length: AHEAD }, ask);
  for (;;) {
    const piece = await asked.shift();
    if (piece === undefined || piece.length === 0) return;
    yield piece;
    if (piece.length < chunk) return;
    asked.push(ask());
  }
}

async function* entries(
  actor: ActorRef<FilesProtocol>,
  path: string,
  { details = false, order = "name", ...options }: AskOptions & ListOptions,
): AsyncGenerator<FileEntry, void, undefined> {
  let after: string | undefined;
  for (;;) {
    const page = { path, details, order, ...(after === undefined ? {} : { after }) };
    const listed = await actor.ask("list", page, options);
    yield* listed.entries;
    const last = listed.entries.at(-1);
    // A list by size has a single page.
    if (!listed.more || last === undefined || order === "size") return;
    const next = last.uri ?? last.name;
    if (next === after) throw new MessageError("protocol", `the list does not go on after ${next}`);
    after = next;
  }
}

async function write(
  actor: ActorRef<FilesProtocol>,
  path: string,
  data: FileData,
  { mode, ...options }: WriteOptions,
): Promise<void> {
  if (typeof data === "string" || data instanceof Uint8Array) {
    return actor.ask("write", { path, ...holding(data), mode: mode ?? "inplace" }, options);
  }
  let length = 0;
  let held: Uint8Array[] = [];
  let parts: PartWriter | undefined;
  try {
    if (mode === "inplace") {
      await actor.ask("write", { path, text: "" }, options);
      parts = new PartWriter(actor, path, options);
    }
    for await (const piece of data) {
      const { signal } = options;
      if (signal?.aborted === true) throw cancelled("write", signal.reason);
      const octets = typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
      if (parts !== undefined) {
        await parts.append(octets);
        continue;
      }
      held.push(octets);
      length += octets.length;
      if (length <= CHUNK) continue;
      parts = await PartWriter.begin(actor, path, options);
      for (const each of held) await parts.append(each);
      held = [];
    }
    if (parts === undefined) {
      if (await writeWhole(actor, path, joined(held), mode ?? "atomic", options)) return;
      parts = await PartWriter.begin(actor, path, options);
      for (const each of held) await parts.append(each);
    }
    await parts.finish(path, mode === "durable");
  } catch (error) {
    // Also if the write was cancelled: remove the partial file.
    await parts?.discard(path);
    throw error;
  }
}

/** A file that is written piece by piece: the file itself, or a temporary one of the node. */
class PartWriter {
  readonly #actor: ActorRef<FilesProtocol>;
  readonly #part: string;
  readonly #options: AskOptions;
  #length = 0;

  constructor(actor: ActorRef<FilesProtocol>, part: string, options: AskOptions) {
    this.#actor = actor;
    this.#part = part;
    this.#options = options;
  }

  static async begin(
    actor: ActorRef<FilesProtocol>,
    path: string,
    options: AskOptions,
  ): Promise<PartWriter> {
    const { part } = await actor.ask("begin", { path }, options);
    return new PartWriter(actor, part, options);
  }

  append(octets: Uint8Array): Promise<void> {
    this.#length += octets.length;
    return this.#actor.ask("append", { path: this.#part, ...holding(octets) }, this.#options);
  }

  async finish(path: string, durable: boolean): Promise<void> {
    if (this.#part === path) return;
    const commit = { part: this.#part, path, length: this.#length, durable };
    await this.#actor.ask("commit", commit, this.#options);
  }

  async discard(path: string): Promise<void> {
    if (this.#part === path) return;
    await this.#actor.ask("delete", { path: this.#part }).catch(() => {});
  }
}

/**
 * Writes a file with one message. Returns `false` if it is too long for one, by the limits of the
 * connection or of the files actor.
 */
async function writeWhole(
  actor: ActorRef<FilesProtocol>,
  path: string,
  octets: Uint8Array,
  mode: WriteMode,
  options: AskOptions,
): Promise<boolean> {
  try {
    await actor.ask("write", { path, ...holding(octets), mode }, options);
    return true;
  } catch (error) {
    if (!(error instanceof MessageError)) throw error;
    const isLong = error.code === "bad-request" || error.message.includes("(rule: size)");
    if (!isLong || octets.length === 0) throw error;
    return false;
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function text(path: string, octets: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(octets);
  } catch (error) {
    throw new MessageError("bad-request", `${path} is not UTF-8`, { cause: error });
  }
}
