import { createHash, randomUUID } from 'node:crypto'
import { pieceSets, type ReadAt } from '@svc/classify'
import { LibraryError, readAtOf } from '@svc/internal-state'
import {
  type FetchContext,
  type FetchTarget,
  type ImportSource,
  isRemote,
  type RemoteFile,
  type SourceFile
} from './source.ts'
import { localBytes } from './staged.ts'

const CHUNK_BYTES = 256 << 10

/**
 * The source with GGUFs that were cut to pieces for their upload as whole files (spec rec.31). Each piece is compared with what the
 * source says of it as it comes, and the whole is hashed like any file.
 */
export function withJoinedPieces(source: ImportSource): ImportSource {
  const byName = new Map(source.files.map((file) => [file.name, file]))
  const sets = pieceSets([...byName.keys()]).map(({ name, pieces }) => ({
    name,
    pieces: pieces.map((piece) => byName.get(piece)!)
  }))
  // of a stranger's import, whose files may have no digest that is believed, the pieces stay pieces
  const joinable = source.origin.onDemand === true ? [] : sets.filter(({ pieces }) => pieces.every(isChecked))
  if (joinable.length === 0) return source
  const gone = new Set(joinable.flatMap(({ pieces }) => pieces))
  return {
    ...source,
    files: [
      ...source.files.filter((file) => !gone.has(file)),
      ...joinable.map(({ name, pieces }) => joined(name, pieces))
    ]
  }
}

/** Whether the bytes of a piece can be compared with what its source says. */
const isChecked = (file: SourceFile): boolean => !isRemote(file) || hashOf(file) !== undefined

const GIT = /^git-blob-sha1:([0-9a-f]{40})/

interface KnownHash {
  readonly algorithm: 'sha256' | 'sha1'
  /** What git hashes before the bytes. */
  readonly before: string
  readonly hex: string
}

function hashOf({ digest, partialKey = '', sizeBytes }: SourceFile): KnownHash | undefined {
  if (digest !== undefined) return { algorithm: 'sha256', before: '', hex: digest.slice('sha256:'.length) }
  const [, hex] = GIT.exec(partialKey) ?? []
  return hex === undefined ? undefined : { algorithm: 'sha1', before: `blob ${sizeBytes}\0`, hex }
}

function joined(name: string, pieces: readonly SourceFile[]): RemoteFile {
  const known = pieces.map((piece) => [hashOf(piece)?.hex ?? randomUUID(), piece.sizeBytes])
  const key = createHash('sha256').update(JSON.stringify(known)).digest('hex')
  return {
    name,
    sizeBytes: pieces.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    partialKey: `joined:${key}`,
    joinedOf: pieces.map((piece) => piece.name),
    ...(pieces.every((piece) => !isRemote(piece) || piece.peek !== undefined) && {
      peek: (signal: AbortSignal) => peekAcross(pieces, signal)
    }),
    fetch: async (into, context) => {
      let offset = 0
      for (const piece of pieces) {
        await fetchPiece(piece, new RangeTarget(into, offset, piece.sizeBytes), offset, context)
        offset += piece.sizeBytes
      }
    }
  }
}

async function fetchPiece(piece: SourceFile, into: RangeTarget, offset: number, context: FetchContext): Promise<void> {
  const { reuse: _, ...more } = context
  const onProgress = (bytesDone: number): void => context.onProgress(offset + bytesDone)
  for (let again = false; ; again = true) {
    const { signal } = context
    if (!into.isWhole) {
      if (isRemote(piece)) await piece.fetch(into, { ...more, onProgress })
      else for await (const [at, chunk] of chunksOf(piece, signal)) await into.write(at, chunk)
    }
    const known = hashOf(piece)
    if (known === undefined || (await hexOf(into, known, signal)) === known.hex) return onProgress(piece.sizeBytes)
    into.unmark(0, piece.sizeBytes)
    if (again) {
      const what = `${JSON.stringify(piece.name)} was fetched twice, and its bytes did not match the listing`
      throw new LibraryError(
        'E_NOT_IMPORTABLE',
        `${what}: they were changed at the source, or are damaged there or on the way`
      )
    }
  }
}

async function* chunksOf(file: Exclude<SourceFile, RemoteFile>, signal: AbortSignal) {
  let at = 0
  for await (const chunk of localBytes(file, await file.open(signal))) {
    signal.throwIfAborted()
    yield [at, chunk] as const
    at += chunk.length
  }
}

async function hexOf(slice: RangeTarget, { algorithm, before }: KnownHash, signal: AbortSignal): Promise<string> {
  const hash = createHash(algorithm).update(before)
  const chunk = new Uint8Array(CHUNK_BYTES)
  for (let at = 0; at < slice.sizeBytes; ) {
    signal.throwIfAborted()
    const count = await slice.read(chunk.subarray(0, Math.min(chunk.length, slice.sizeBytes - at)), at)
    if (count === 0) break
    hash.update(chunk.subarray(0, count))
    at += count
  }
  return hash.digest('hex')
}

/** A range of a blob that is being fetched, as a target of its own. Threads cannot write to it, since they do not know where it begins. */
class RangeTarget implements FetchTarget {
  readonly fd = undefined
  readonly sizeBytes: number
  readonly #into: FetchTarget
  readonly #start: number

  constructor(into: FetchTarget, start: number, sizeBytes: number) {
    this.#into = into
    this.#start = start
    this.sizeBytes = sizeBytes
  }

  get isWhole(): boolean {
    const [only] = this.ranges()
    return this.sizeBytes === 0 || (only !== undefined && only[0] === 0 && only[1] === this.sizeBytes)
  }

  ranges(): readonly (readonly [number, number])[] {
    const end = this.#start + this.sizeBytes
    return this.#into
      .ranges()
      .map(([from, to]) => [Math.max(from, this.#start) - this.#start, Math.min(to, end) - this.#start] as const)
      .filter(([from, to]) => from < to)
  }

  write(offset: number, bytes: Uint8Array): Promise<void> {
    return this.#into.write(this.#start + offset, bytes)
  }

  markWritten(start: number, end: number): Promise<void> | undefined {
    return this.#into.markWritten(this.#start + start, this.#start + end)
  }

  unmark(start: number, end: number): void {
    this.#into.unmark(this.#start + start, this.#start + end)
  }

  read(target: Uint8Array, offset: number): Promise<number> {
    return this.#into.read(target, this.#start + offset)
  }
}

/** Random access across pieces. */
function peekAcross(pieces: readonly SourceFile[], signal: AbortSignal): ReadAt {
  const readers = pieces.map((piece): ReadAt => piece.peek?.(signal) ?? readHere(piece, signal))
  return async (offset, lengthBytes) => {
    const parts: Uint8Array[] = []
    let start = 0
    for (const [i, { sizeBytes }] of pieces.entries()) {
      const from = Math.max(offset, start)
      const to = Math.min(offset + lengthBytes, start + sizeBytes)
      if (from < to) parts.push(await readers[i]!(from - start, to - from))
      start += sizeBytes
    }
    return parts.length === 1 ? parts[0]! : new Uint8Array(Buffer.concat(parts))
  }
}

const readHere =
  (piece: SourceFile, signal: AbortSignal): ReadAt =>
  async (offset, lengthBytes) => {
    if (isRemote(piece)) return new Uint8Array(0)
    const opened = await piece.open(signal)
    try {
      return await readAtOf(opened.fd, piece.sizeBytes)(offset, lengthBytes)
    } finally {
      await opened.close()
    }
  }
