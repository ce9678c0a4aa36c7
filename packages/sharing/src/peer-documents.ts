import { hash } from 'node:crypto'
import { type Documents, LibraryError, type SwarmHints } from '@svc/library/parts'
import {
  type ArtifactTorrent,
  COMPANION_BOUNDS,
  type Companions,
  companionsTorrent,
  MAX_DOCUMENT_BYTES,
  ManifestError,
  manifestPath,
  type Sealed,
  torrentName
} from '@svc/manifest'
import {
  type LayoutFile,
  leafLayer,
  parseInfohash,
  piecesRoot,
  type TorrentInfo,
  type TorrentLayout
} from '@svc/metainfo'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import type { FileState, FileWriter, Swarm, TorrentProgress, TorrentStorage } from '@svc/swarm'
import { type FetchTimeouts, followFetch } from './followed-fetch.ts'

export interface PeerDocumentRequest {
  readonly pin: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohashText: string
  /** Known if a webseed gave it; else peers do. */
  readonly info?: TorrentInfo | undefined
  readonly hints: SwarmHints
  /** Only the hinted sources are contacted, and it is not announced. */
  readonly quiet: boolean
}

export interface PeerDocumentOptions extends FetchTimeouts {
  /** Announced to in addition to the hints. */
  readonly trackers: readonly string[]
  readonly documents: Pick<Documents, 'parse'>
}

/** The job that waits. */
export interface PeerDocumentContext {
  readonly signal: AbortSignal
  /** Called for a source that was proven wrong and dropped. */
  readonly onLie: (source: string) => void
  readonly onProgress: (progress: { readonly peers?: number; readonly message: string | undefined }) => void
}

/**
 * Fetches the pinned manifest from its own torrent (spec add.9): peers send the metadata, which must match the
 * infohash, then that one file, which must match the pin. Nothing else is requested, uploaded or stored. @throws
 * LibraryError `E_SOURCE_UNAVAILABLE`; `E_NOT_IMPORTABLE` when the torrent has no such manifest; the signal's reason
 */
export async function manifestFromPeers(
  engine: Swarm,
  request: PeerDocumentRequest,
  context: PeerDocumentContext,
  options: PeerDocumentOptions
): Promise<Uint8Array> {
  const { pin } = request
  const wanted: WantedFiles<Uint8Array> = {
    what: 'the manifest',
    choose(layout) {
      const own = documentIn(layout, pin)
      return own && [own]
    },
    check: async ([own]) => (own!.digest === pin ? own!.bytes : undefined),
    refuse: () => notBound(pin, 'it contains no manifest')
  }
  return fetchWanted(wanted, engine, request, context, options)
}

/** Fetched companions, still in memory. */
export interface FetchedCompanions {
  readonly companions: Sealed<Companions>
  readonly bytes: ReadonlyMap<Sha256Digest, Uint8Array>
}

/**
 * Fetches pinned companions from their own torrent (spec doc.22): at most 64 MiB, in memory until every byte is proven,
 * and document, torrent and bytes agree. @throws LibraryError as {@link manifestFromPeers}
 */
export async function companionsFromPeers(
  engine: Swarm,
  request: PeerDocumentRequest,
  context: PeerDocumentContext,
  options: PeerDocumentOptions
): Promise<FetchedCompanions> {
  const { pin, infohashText } = request
  const wanted: WantedFiles<FetchedCompanions> = {
    what: 'the companions',
    choose(layout) {
      const own = documentIn(layout, pin)
      const others = layout.files.filter((file) => file !== own)
      const isBounded =
        others.length <= COMPANION_BOUNDS.files &&
        others.every(({ lengthBytes }) => lengthBytes <= COMPANION_BOUNDS.fileBytes) &&
        others.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0) <= COMPANION_BOUNDS.totalBytes
      return own && isBounded ? [own, ...others] : undefined
    },
    check: (files) => checkedCompanions(files, pin, infohashText, options.documents),
    refuse: () => notBound(pin, 'it does not contain the companions')
  }
  return fetchWanted(wanted, engine, request, context, options)
}

/** The document that a torrent has its name from, if it is in it. */
const documentIn = ({ name, files }: TorrentLayout, pin: Sha256Digest): LayoutFile | undefined =>
  name === torrentName(pin)
    ? files.find(({ path, lengthBytes }) => path === manifestPath(pin) && lengthBytes <= MAX_DOCUMENT_BYTES)
    : undefined

const notBound = (pin: Sha256Digest, what: string): LibraryError =>
  new LibraryError('E_NOT_IMPORTABLE', `the torrent does not belong to the pin: ${what} ${pin}`)

/** Undefined if anything differs from the document, which determines the torrent's infohash. */
async function checkedCompanions(
  files: readonly MemoryFile[],
  pin: Sha256Digest,
  infohashText: string,
  documents: PeerDocumentOptions['documents']
): Promise<FetchedCompanions | undefined> {
  const document = files.find(({ digest }) => digest === pin)
  if (document === undefined) return undefined
  const byDigest = new Map(files.map((file) => [file.digest, file]))
  let companions: Sealed<Companions>
  let torrent: ArtifactTorrent
  try {
    companions = { digest: pin, bytes: document.bytes, document: await documents.parse('companions', document.bytes) }
    torrent = companionsTorrent(companions, (digest) => byDigest.get(digest)?.root)
  } catch (error) {
    if (error instanceof ManifestError) return undefined
    throw error
  }
  if (torrent.infohashText !== infohashText) return undefined
  // two files may have one root only if they are the same
  if (companions.document.files.some(({ digest, size }) => byDigest.get(digest)?.bytes.length !== size))
    return undefined
  return { companions, bytes: new Map(files.map(({ digest, bytes }) => [digest, bytes])) }
}

async function fetchWanted<T>(
  wanted: WantedFiles<T>,
  engine: Swarm,
  { infohashText, info, hints, quiet }: PeerDocumentRequest,
  { signal, onProgress, onLie }: PeerDocumentContext,
  { trackers, documents: _, ...timeouts }: PeerDocumentOptions
): Promise<T> {
  const { what } = wanted
  const infohash = parseInfohash(infohashText)
  // what a joined torrent has is in the store, and the pin was not found there
  if (engine.get(infohash) !== undefined) throw wanted.refuse()
  const storage = new MemoryStorage(wanted)
  const torrent = engine.add({
    ...(info === undefined ? { infohash } : { info, webseeds: hints.webseeds }),
    storage,
    peers: hints.peers,
    strangers: hints.others ?? [],
    trackers: quiet ? [] : [...new Set([...hints.trackers, ...trackers])],
    ...(quiet && { dht: false, pex: false }),
    upload: false,
    disclose: false
  })
  storage.leaveOut = (file) => torrent.priority(file, 0)
  const warnings = new Set<string>()
  torrent.on('warning', ({ kind, source, message, lied }) => {
    if (lied === true) onLie(`${kind} ${source}: ${message}`)
    if (warnings.size < 5) warnings.add(`${source}: ${message}`)
  })
  const partOf = ({ state }: TorrentProgress): string => (state === 'metadata' ? 'the list of files' : what)
  const gaveUp = (why: 'silent' | 'lonely', now: TorrentProgress): LibraryError => {
    const silence = `no peer sent ${partOf(now)} for ${Math.round(timeouts.fillTimeoutMs / 1000)} s`
    const loneliness = 'no peer answers, and neither a tracker nor the DHT can name another one'
    const reasons = warnings.size > 0 ? ` (${[...warnings].join('; ')})` : ''
    return new LibraryError(
      'E_SOURCE_UNAVAILABLE',
      `${why === 'silent' ? silence : loneliness}${reasons}; try again when one is available`
    )
  }
  try {
    return await followFetch(
      {
        torrent,
        done: storage.done,
        failure: (cause) =>
          cause instanceof LibraryError
            ? cause
            : new LibraryError('E_SOURCE_UNAVAILABLE', `${what} did not arrive: ${cause.message}`, { cause }),
        onProgress(now) {
          const { peers } = now
          const asked = `asking ${peers} ${peers === 1 ? 'peer' : 'peers'} for ${partOf(now)}`
          onProgress({ peers, message: peers === 0 ? 'looking for a peer that has it' : asked })
        },
        gaveUp
      },
      { ...timeouts, signal }
    )
  } finally {
    await torrent.remove()
  }
}

/** A received file, with the facts derived from its bytes. */
interface MemoryFile {
  readonly bytes: Uint8Array
  readonly digest: Sha256Digest
  /** Undefined for an empty file. */
  readonly root: Uint8Array | undefined
}

interface WantedFiles<T> {
  /** For people. */
  readonly what: string
  /** Undefined for a torrent that is not the right one. */
  choose(layout: TorrentLayout): readonly LayoutFile[] | undefined
  /** What the chosen files are; undefined if they are wrong: given their roots, no peer can send other bytes. */
  check(files: readonly MemoryFile[]): Promise<T | undefined>
  refuse(): LibraryError
}

/** Keeps chosen files of a torrent in memory, and accepts no other. */
class MemoryStorage<T> implements TorrentStorage {
  readonly done: Promise<T>
  /** Called for each file that was not chosen. */
  leaveOut: (fileIndex: number) => void = () => undefined
  readonly #wanted: WantedFiles<T>
  readonly #result = Promise.withResolvers<T>()
  readonly #bytes = new Map<number, Buffer>()
  readonly #files = new Map<number, MemoryFile>()
  #chosen: readonly LayoutFile[] = []

  constructor(wanted: WantedFiles<T>) {
    this.#wanted = wanted
    this.done = this.#result.promise
    this.done.catch(() => undefined)
  }

  async open(layout: TorrentLayout): Promise<void> {
    const chosen = this.#wanted.choose(layout)
    if (chosen === undefined) return this.#result.reject(this.#wanted.refuse())
    this.#chosen = chosen
    const wanted = new Set(chosen)
    for (const file of layout.files) if (!wanted.has(file)) this.leaveOut(file.index)
  }

  async state(_file: LayoutFile): Promise<FileState> {
    return { kind: 'partial', ranges: [] }
  }

  async read(fileIndex: number, offset: number, target: Uint8Array): Promise<number> {
    const part = this.#bytes.get(fileIndex)?.subarray(offset, offset + target.length)
    if (part === undefined) throw new Error('only chosen files are kept')
    target.set(part)
    return part.length
  }

  async writer(fileIndex: number): Promise<FileWriter> {
    const file = this.#chosen.find(({ index }) => index === fileIndex)
    if (file === undefined) throw new Error('only chosen files are kept')
    const bytes = Buffer.alloc(file.lengthBytes)
    this.#bytes.set(fileIndex, bytes)
    return {
      fd: undefined,
      write: async (offset, part) => void bytes.set(part, offset),
      markWritten: () => undefined,
      unmark: () => undefined
    }
  }

  async fileComplete(fileIndex: number): Promise<'ok'> {
    if (!this.#chosen.some(({ index }) => index === fileIndex)) return 'ok'
    const bytes = this.#bytes.get(fileIndex) ?? Buffer.alloc(0)
    const digest = digestFromHex(hash('sha256', bytes))
    const root = bytes.length === 0 ? undefined : piecesRoot(leafLayer(bytes), bytes.length)
    this.#files.set(fileIndex, { bytes, digest, root })
    if (this.#files.size < this.#chosen.length) return 'ok'
    const files = this.#chosen.map(({ index }) => this.#files.get(index)!)
    this.#result.resolve(this.#wanted.check(files).then((checked) => checked ?? Promise.reject(this.#wanted.refuse())))
    return 'ok'
  }

  async close(): Promise<void> {
    this.#result.reject(new LibraryError('E_ABORTED', 'the torrent was removed'))
  }
}
