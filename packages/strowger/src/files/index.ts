import { holding } from "../base64.js";
import { MessageError } from "../error.js";
import type { ActorRef, AskOptions } from "../protocol.js";

/** What an entry of a directory is; `special` is a FIFO, a socket or a device. */
export type EntryKind = "file" | "directory" | "link" | "special";

/** An entry of a directory; the figures are there where they were asked for. */
export interface FileEntry {
  readonly name: string;
  readonly kind: EntryKind;
  readonly size?: number;
  readonly modified_ms?: number;
  readonly links?: number;
}

/** A directory with what is below it; `cut` says that there is more. */
export interface FileTree {
  readonly name: string;
  readonly kind: EntryKind;
  readonly entries?: readonly FileTree[];
  readonly cut?: boolean;
}

/** A file that was found, or a line in it. */
export interface FileMatch {
  readonly path: string;
  readonly line?: number;
  readonly text?: string;
}

/** What a search found; `cut` names the limit that ended it. */
export interface FilesFound {
  readonly matches: readonly FileMatch[];
  readonly files: number;
  readonly cut?: string;
}

/** A change of a text: `old` is there once, unless `all` is set. */
export interface FileChange {
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

/** How a file is replaced: over itself, by a new one, or by one that is on the disk before. */
export type WriteMode = "inplace" | "atomic" | "durable";

/** How often a verb was asked, and what of it came to nothing. */
export interface VerbUsage {
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  readonly octets: number;
}

/** What a files actor did, and how much of its quota is used. */
export interface FilesUsage {
  readonly octets: number;
  readonly octets_limit: number;
  readonly entries: number;
  readonly entries_limit: number;
  readonly verbs: Readonly<Record<string, VerbUsage>>;
}

type Holding = { readonly path: string; readonly text?: string; readonly base64?: string };
type Listed = { readonly entries: readonly FileEntry[]; readonly more: boolean };
type Page = { readonly path: string; readonly after?: string; readonly details?: boolean };

/** The messages of a files actor. */
export type FilesProtocol = {
  read: {
    payload: { readonly path: string; readonly offset?: number; readonly length?: number };
    reply: Uint8Array;
  };
  media: { payload: { readonly path: string }; reply: { mime: string; base64: string } };
  write: { payload: Holding & { readonly mode?: WriteMode } };
  append: { payload: Holding };
  edit: {
    payload: {
      readonly path: string;
      readonly changes: readonly FileChange[];
      readonly dry_run?: boolean;
    };
    reply: { places: number; diff: string };
  };
  list: { payload: Page; reply: Listed };
  tree: { payload: { readonly path: string; readonly depth?: number }; reply: FileTree };
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
  root: { reply: { path: string; read_only: boolean } };
  usage: { reply: FilesUsage };
};

/** Where the actor is: a connection to a node, or a system of this process that has a stand-in. */
export type FilesPlace =
  | { actor(at: string): ActorRef<FilesProtocol> }
  | { find(path: string): ActorRef<FilesProtocol> | undefined };

/** How a file is read in pieces. */
export interface ChunkOptions extends AskOptions {
  /** From which octet on: 0. */
  readonly from?: number;
  /** Octets of a piece: 262 144. */
  readonly chunk?: number;
}

/** Files below one directory, as an actor reaches them. */
export interface Files {
  /** The actor itself. */
  readonly actor: ActorRef<FilesProtocol>;
  /** Reads a whole file. */
  read(path: string, options?: ChunkOptions): Promise<Uint8Array>;
  /** Reads a whole file that is UTF-8; another is a `bad-request`. */
  readText(path: string, options?: ChunkOptions): Promise<string>;
  /** Reads a file piece by piece, a few ahead of who reads; it may be larger than memory. */
  chunks(path: string, options?: ChunkOptions): AsyncIterableIterator<Uint8Array>;
  /**
   * Writes a whole file: text, octets, or pieces as they come. Pieces go into a file beside it,
   * which takes its place at the end, so that half of them is never seen.
   */
  write(path: string, data: FileData, options?: WriteOptions): Promise<void>;
  /** Writes behind the end of a file. */
  append(path: string, data: string | Uint8Array, options?: AskOptions): Promise<void>;
  /** Changes text in a file: all of the changes, or none. */
  edit(
    path: string,
    changes: readonly FileChange[],
    options?: AskOptions & { readonly dryRun?: boolean },
  ): Promise<{ readonly places: number; readonly diff: string }>;
  /** Lists a directory by name, however long it is. */
  list(
    path?: string,
    options?: AskOptions & { readonly details?: boolean },
  ): AsyncIterableIterator<FileEntry>;
  tree(path?: string, options?: AskOptions & { readonly depth?: number }): Promise<FileTree>;
  search(
    what: {
      readonly path?: string;
      readonly names?: string;
      /** What is left out, with what is below it: globs, or names at every level. */
      readonly exclude?: readonly string[];
      readonly text?: string;
    },
    options?: AskOptions & { readonly most?: number },
  ): Promise<FilesFound>;
  stat(path: string, options?: AskOptions): Promise<FileEntry>;
  /** Makes a directory, with those above it. */
  make(path: string, options?: AskOptions): Promise<void>;
  rename(
    from: string,
    to: string,
    options?: AskOptions & { readonly replace?: boolean },
  ): Promise<void>;
  delete(path: string, options?: AskOptions & { readonly recursive?: boolean }): Promise<void>;
  usage(options?: AskOptions): Promise<FilesUsage>;
}

/** What is written. */
export type FileData = string | Uint8Array | AsyncIterable<string | Uint8Array>;

/** How a file is written; pieces are `atomic` unless it is said, and never `durable`. */
export interface WriteOptions extends AskOptions {
  readonly mode?: WriteMode;
}

const CHUNK = 256 * 1024;
/** Pieces that are asked for ahead. */
const AHEAD = 4;

/**
 * The files that an actor of a node reaches, at `@(tools/files)` unless it has another name.
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
    chunks,
    write: (path, data, options = {}) => write(actor, path, data, options),
    append: (path, data, options) => actor.ask("append", { path, ...holding(data) }, options),
    edit: (path, changes, options = {}) =>
      actor.ask("edit", { path, changes, dry_run: options.dryRun ?? false }, options),
    list: (path = "", options = {}) => entries(actor, path, options),
    tree: (path = "", options = {}) => {
      const depth = options.depth === undefined ? {} : { depth: options.depth };
      return actor.ask("tree", { path, ...depth }, options);
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
    throw new MessageError("unknown-target", `nobody is at ${path}`);
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
    // What was asked ahead may be behind the end of a loop that was left.
    piece.catch(() => {});
    offset += chunk;
    return piece;
  };
  // The first one says whether there are more.
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
  { details = false, ...options }: AskOptions & { readonly details?: boolean },
): AsyncGenerator<FileEntry, void, undefined> {
  let after: string | undefined;
  for (;;) {
    const page = { path, details, ...(after === undefined ? {} : { after }) };
    const listed = await actor.ask("list", page, options);
    yield* listed.entries;
    const last = listed.entries.at(-1);
    if (!listed.more || last === undefined) return;
    after = last.name;
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
  if (mode === "durable") {
    const why = "pieces cannot be written durably: write them atomically, or all at once";
    throw new MessageError("bad-request", why);
  }
  const to = mode === "inplace" ? path : `${path}.part-${Math.random().toString(36).slice(2)}`;
  try {
    await actor.ask("write", { path: to, text: "" }, options);
    for await (const piece of data) {
      await actor.ask("append", { path: to, ...holding(piece) }, options);
    }
    if (to !== path) await actor.ask("rename", { from: to, to: path, replace: true }, options);
  } catch (error) {
    // Also where it was cancelled: what is half there goes.
    if (to !== path) await actor.ask("delete", { path: to }).catch(() => {});
    throw error;
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
