import { CasError } from '@svc/cas'
import type { Hub, HubFile } from '@svc/hub'
import {
  type BlobTree,
  type Library,
  LibraryError,
  type MakeRoom,
  Proof,
  type Room,
  type Work
} from '@svc/library/parts'
import { compareText, type Sha256Digest } from '@svc/ref'
import { SwarmV1Error, type V1Layout, type V1Storage, type V1Swarm, type V1Torrent } from '@svc/swarm-v1'
import type { Anchor, AnchorFile } from './anchor.ts'
import { AnchoredContent, type WantedFile, wantedFile } from './content.ts'
import type { ListedTorrent } from './listing.ts'

export interface PullTimings {
  readonly metadataTimeoutMs: number
  /** After this long without a byte the web sources are used as well; at once if the listing counts no seeder. */
  readonly webAfterMs: number
  /** After this long without a byte from any source the pull fails. */
  readonly fillTimeoutMs: number
  readonly tickMs: number
  /** A crash loses at most the work of this time. */
  readonly checkpointMs: number
}

export interface AnchoredPullOptions
  extends Pick<MakeRoom, 'mayEvict'>,
    Pick<Library, 'clock' | 'store' | 'leafLayers' | 'holdings'> {
  readonly room: Pick<Room, 'require'>
  readonly swarm: V1Swarm
  readonly entry: ListedTorrent
  readonly anchor: Anchor
  readonly peers: readonly string[]
  /** Hubs that can serve the anchored files, tried in order: the listing's webseed, the hub itself. */
  readonly webSources: readonly Hub[]
  readonly timings: PullTimings
  /** Whether peers may get the arriving files. */
  readonly upload: boolean
  /** Whether only `peers` may hear of it (spec add.11). */
  readonly quiet: boolean
}

export interface PulledFile {
  readonly path: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
  /** Absent for a blob that the store already had. */
  readonly tree: BlobTree | undefined
  /** The pull's source gave all its bytes. */
  readonly isSeen: boolean
}

export interface Pulled {
  readonly files: readonly PulledFile[]
  /** Absent when all bytes came from the web: then there is nothing to seed with. */
  readonly layout: V1Layout | undefined
  readonly warnings: readonly string[]
}

/** Peers can appear by the thousand, and so can bad ones. */
const MAX_WARNINGS = 50

/**
 * One anchored pull. The BitTorrent v1 swarm and, if it delivers nothing, the web sources fill the same partial
 * blobs. Only when all match the anchor does the first become a blob. Invariant: `#contents` has one entry per
 * content, however many files share it.
 */
export class CatalogPull {
  readonly #options: AnchoredPullOptions
  readonly #job: Work
  readonly #proof: Proof
  readonly #contents = new Map<string, Promise<AnchoredContent>>()
  readonly #opened: AnchoredContent[] = []
  readonly #warnings: string[] = []
  /** Aborts the web sources when nothing is missing. */
  readonly #enough = new AbortController()
  /** Aborts waits for partial blobs when the pull is over. */
  readonly #over = new AbortController()
  #wanted: readonly WantedFile[] | undefined
  #layout: V1Layout | undefined
  #webBytes = false

  constructor(options: AnchoredPullOptions, job: Work) {
    this.#options = options
    this.#job = job
    this.#proof = new Proof(options.holdings, { kind: 'catalog', repo: options.entry.repo })
  }

  /**
   * @throws LibraryError `E_NOT_IMPORTABLE` (the anchor does not cover or match what came), `E_SOURCE_UNAVAILABLE`,
   *   `E_IO` (no metadata: the swarm is unreachable), `E_NO_SPACE`; the signal's reason. Fetched bytes are kept.
   */
  async run(): Promise<Pulled> {
    const { swarm, entry, peers, quiet, timings } = this.#options
    const signal = AbortSignal.any([this.#job.signal, this.#over.signal])
    const torrent = swarm.join({
      infohash: entry.infohash,
      trackers: entry.trackers,
      peers,
      quiet,
      metadataTimeoutMs: timings.metadataTimeoutMs,
      open: (layout) => this.#open(layout, signal),
      onWarning: (message) => void (this.#warnings.length < MAX_WARNINGS && this.#warnings.push(message))
    })
    try {
      await this.#fill(torrent, signal)
      await torrent.leave()
      return await this.#commit()
    } catch (error) {
      this.#job.signal.throwIfAborted()
      throw toLibraryError(error)
    } finally {
      this.#enough.abort()
      this.#over.abort()
      await torrent.leave()
      await Promise.allSettled(this.#contents.values())
      // each is released, whichever fails: this process can still resume it, and a later one as far as the journal goes.
      for (const content of this.#opened) await content.release().catch(() => undefined)
    }
  }

  /** Runs until every wanted file is complete. */
  async #fill(torrent: V1Torrent, signal: AbortSignal): Promise<void> {
    const { clock, timings } = this.#options
    const webAfterMs = hasNobodyToAsk(this.#options) ? 0 : timings.webAfterMs
    let swarmFailure: unknown
    let web: Promise<void> | undefined
    let webFailure: unknown
    let bytes = -1
    let since = clock.monotonic()
    let checkpointed = since
    torrent.ready.catch((error: unknown) => {
      swarmFailure = error
    })
    torrent.done.catch((error: unknown) => {
      swarmFailure ??= error
    })
    for (;;) {
      this.#job.signal.throwIfAborted()
      const done = this.#report(torrent)
      if (done !== bytes) {
        bytes = done
        since = clock.monotonic()
      }
      if (this.#isFilled()) break
      if (clock.monotonic() - checkpointed >= timings.checkpointMs) {
        await Promise.all(this.#opened.map((content) => content.checkpoint()))
        checkpointed = clock.monotonic()
      }
      const silentMs = clock.monotonic() - since
      const webPossible = web === undefined && this.#options.webSources.length > 0
      if (webPossible && (swarmFailure !== undefined ? isUnreachable(swarmFailure) : silentMs >= webAfterMs)) {
        web = this.#fromWeb(signal).catch((error: unknown) => {
          webFailure = error
          // then the bytes of the swarm find no space either
          if (isNoSpace(error)) swarmFailure = error
        })
        since = clock.monotonic()
      } else if (
        swarmFailure !== undefined &&
        (web === undefined || webFailure !== undefined || !isUnreachable(swarmFailure))
      ) {
        throw swarmFailure
      } else if (silentMs >= timings.fillTimeoutMs) {
        throw new LibraryError(
          'E_SOURCE_UNAVAILABLE',
          `neither the swarm nor the web sent a byte for ${Math.round(timings.fillTimeoutMs / 1000)} s; the next attempt continues from what was fetched`,
          { cause: webFailure }
        )
      }
      await pause(clock, timings.tickMs, torrent.done)
    }
    this.#enough.abort()
    await web
  }

  /** Checks the torrent's layout against the anchor, and opens the storage. */
  async #open(layout: V1Layout, signal: AbortSignal): Promise<V1Storage> {
    const { anchor, entry } = this.#options
    const isSingle = layout.files.length === 1
    const wanted = layout.files.map(({ path, sizeBytes, pad }) => {
      if (pad) return undefined
      const named = isSingle || anchor.files.has(path) ? anchoredByName(anchor, path) : undefined
      if (named === undefined)
        throw refusal(`the torrent of ${entry.repo} holds "${path}", which its anchor does not name`)
      const [anchored, expected] = named
      if (expected.sizeBytes !== undefined && expected.sizeBytes !== sizeBytes)
        throw refusal(`"${path}" has ${sizeBytes} bytes in the torrent and ${expected.sizeBytes} in its anchor`)
      return wantedFile(anchored, sizeBytes, expected)
    })
    await this.#want(
      wanted.filter((file) => file !== undefined),
      signal
    )
    this.#layout = layout
    const contents = await Promise.all(wanted.map((file) => file && this.#content(file, signal)))
    return {
      // its peers get no bytes that came from another import (spec add.37)
      upload: this.#options.upload && contents.every((content) => content?.isSeen !== false),
      has: (file, start, end) => contents[file]!.has(start, end),
      read: (file, offset, target) => contents[file]!.read(offset, target),
      write: (file, offset, bytes) => contents[file]!.write(offset, bytes)
    }
  }

  async #want(files: readonly WantedFile[], signal: AbortSignal): Promise<void> {
    // in the order of their keys, so that two pulls never wait for each other
    for (const file of files.toSorted((a, b) => compareText(a.key, b.key))) await this.#content(file, signal)
    const missing = this.#opened.reduce((sum, content) => sum + content.sizeBytes - content.bytesDone, 0)
    if (missing > 0) await this.#options.room.require(missing, { mayEvict: this.#options.mayEvict, signal })
    this.#wanted = files
  }

  #content(file: WantedFile, signal: AbortSignal): Promise<AnchoredContent> {
    const known = this.#contents.get(file.key)
    if (known !== undefined) return known
    const content = AnchoredContent.open(this.#options.store, file, this.#proof, signal).then((opened) => {
      this.#opened.push(opened)
      return opened
    })
    this.#contents.set(file.key, content)
    return content
  }

  #isFilled(): boolean {
    if (this.#wanted === undefined) return false
    const distinct = new Set(this.#wanted.map(({ key }) => key)).size
    return this.#opened.length === distinct && this.#opened.every((content) => content.complete)
  }

  /** Fetches the anchored files from the web. Without metadata, only the file that the listing names. */
  async #fromWeb(signal: AbortSignal): Promise<void> {
    const { anchor, entry } = this.#options
    if (this.#wanted === undefined) {
      const [path = '', expected] = anchoredByName(anchor, entry.displayName) ?? []
      if (expected?.sizeBytes === undefined)
        throw new LibraryError('E_SOURCE_UNAVAILABLE', `the anchor of ${entry.repo} has no file "${entry.displayName}"`)
      await this.#want([wantedFile(path, expected.sizeBytes, expected)], signal)
    }
    const untilEnough = AbortSignal.any([signal, this.#enough.signal])
    for (const file of this.#wanted!) {
      const content = await this.#content(file, signal)
      const hubFile = this.#hubFile(file)
      if (hubFile === undefined || content.complete) continue
      this.#webBytes = true
      await this.#download(hubFile, content, untilEnough)
    }
  }

  /** Asks the web sources one after the other until `check` passes. @throws the error of the last one */
  async #download(
    file: HubFile,
    content: AnchoredContent,
    signal: AbortSignal,
    check: () => Promise<void> = async () => undefined
  ): Promise<void> {
    let failure: unknown
    for (const source of this.#options.webSources) {
      try {
        await source.download(file, content, { signal })
        return await check()
      } catch (error) {
        signal.throwIfAborted()
        failure = error
        this.#warnings.push(`${source.endpoint} did not give "${file.path}": ${(error as Error).message}`)
      }
    }
    throw failure
  }

  /** The file at a web source; for a rescued model only its mirror may still have it. */
  #hubFile({ path, sizeBytes, anchor }: WantedFile): HubFile | undefined {
    if (anchor.repoId !== undefined) return anchor
    const { repo, revision } = this.#options.anchor
    if (revision === undefined || anchor.sha256 === undefined) return undefined
    return { repoId: repo, commit: revision, path, sizeBytes, sha256: anchor.sha256 }
  }

  async #commit(): Promise<Pulled> {
    for (const content of this.#opened) await this.#verify(content)
    const committed = new Map<string, Pick<PulledFile, 'digest' | 'tree' | 'isSeen'>>()
    for (const content of this.#opened) {
      const { file, isSeen } = content
      const { digest, hashes } = await content.commit()
      if (hashes !== undefined) await this.#proof.committed({ name: file.path, digest: file.anchor.sha256 })
      committed.set(file.key, { digest, isSeen, tree: hashes && (await this.#options.leafLayers.keep(hashes)) })
    }
    const files = this.#wanted!.map(({ path, sizeBytes, key }) => ({ path, sizeBytes, ...committed.get(key)! }))
    return { files, layout: this.#layout, warnings: this.#warnings }
  }

  /** @throws LibraryError `E_NOT_IMPORTABLE` for bytes that the anchor does not name */
  async #verify(content: AnchoredContent): Promise<void> {
    try {
      await content.verify()
    } catch (error) {
      if (!isWrongBytes(error)) throw error
      const { path } = content.file
      const refused = refusal(`"${path}" does not match the anchor: its bytes have another digest`, error)
      // of several sources only the anchor shows that one was wrong: fetch once more from the start, from the web
      const hubFile = this.#webBytes ? this.#hubFile(content.file) : undefined
      if (hubFile === undefined) throw refused
      const { signal } = this.#job
      await this.#download(hubFile, content, signal, () => content.verify()).catch(() => {
        signal.throwIfAborted()
        throw refused
      })
    }
  }

  /** @returns the number of verified bytes that are there. */
  #report(torrent: V1Torrent): number {
    const bytesDone = this.#opened.reduce((sum, content) => sum + content.bytesDone, 0)
    const bytesTotal = this.#opened.reduce((sum, content) => sum + content.sizeBytes, 0)
    const { peers, downBytesPerSecond, unverifiedBytes } = torrent.progress()
    this.#job.report({
      peers,
      rateBytesPerSecond: downBytesPerSecond,
      message: this.#wanted === undefined ? "waiting for the torrent's metadata from its swarm" : undefined,
      ...(this.#wanted && {
        filesTotal: this.#wanted.length,
        bytesDone: Math.min(bytesTotal, bytesDone + unverifiedBytes),
        bytesTotal
      })
    })
    return bytesDone
  }
}

const refusal = (message: string, cause?: unknown): LibraryError =>
  new LibraryError('E_NOT_IMPORTABLE', message, { cause })

/** Finds a file by its whole path, else by a base name that only one file has. */
function anchoredByName(anchor: Anchor, name: string): readonly [string, AnchorFile] | undefined {
  const exact = anchor.files.get(name)
  if (exact) return [name, exact]
  const matches = [...anchor.files].filter(([path]) => path.slice(path.lastIndexOf('/') + 1) === name)
  return matches.length === 1 ? matches[0] : undefined
}

const isUnreachable = (error: unknown): boolean => error instanceof SwarmV1Error && error.reason === 'metadata-timeout'

const isNoSpace = (error: unknown): boolean =>
  (error instanceof CasError || error instanceof LibraryError) && error.code === 'E_NO_SPACE'

const isWrongBytes = (error: unknown): boolean =>
  (error instanceof CasError && error.code === 'E_DIGEST_MISMATCH') ||
  (error instanceof LibraryError && error.code === 'E_NOT_IMPORTABLE')

function toLibraryError(error: unknown): unknown {
  if (!(error instanceof SwarmV1Error)) return error
  if (error.reason === 'metadata') return refusal(error.message, error)
  return new LibraryError('E_IO', error.message, { cause: error })
}

async function pause(clock: Library['clock'], ms: number, until: Promise<unknown>): Promise<void> {
  const timer = Promise.withResolvers<void>()
  const handle = clock.after(ms, timer.resolve)
  await Promise.race([timer.promise, until.catch(() => timer.promise)])
  handle.cancel()
}

const hasNobodyToAsk = ({ entry, peers, quiet }: Pick<AnchoredPullOptions, 'entry' | 'peers' | 'quiet'>): boolean =>
  entry.seeds === 0 || (quiet && peers.length === 0)
