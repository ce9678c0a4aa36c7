import type { DiskBlobStore } from '@svc/cas'
import type { ImportBtBody, Job } from '@svc/client/protocol'
import { type ArtifactTorrent, pieceLayersOf, sealRecord, torrentOf } from '@svc/manifest'
import { MetainfoError, type PieceLayers, parseMagnet, tryParseInfohash } from '@svc/metainfo'
import { type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { Dispatcher } from 'undici'
import { DaemonError } from '../errors.ts'
import { writeDocument } from '../import/seal.ts'
import type { JobContext, JobOutcome } from '../jobs/job-work.ts'
import type { JobRegistry } from '../jobs/registry.ts'
import type { ArtifactState, Artifacts } from '../library/artifacts.ts'
import { checkedHints, isHttpUrl, isPeerAddress, isTrackerUrl } from '../library/hints.ts'
import type { LeafLayers } from '../library/leaf-layers.ts'
import type { SwarmHints } from '../library/origin.ts'
import { oneChunk, readSmallBlob } from '../library/small-blob.ts'
import type { FetchContext, FetchProgress, FetchRequest } from './artifact-fetch.ts'
import { sealedManifest } from './artifact-torrents.ts'
import { WebseedDocuments } from './pinned-manifest.ts'

/** What a checked request comes to. */
export interface PinnedImport {
  readonly pin: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohashText: string
  readonly hints: SwarmHints
}

/**
 * Reads a body of POST /v1/import/bt (spec route.18): one of magnet and infohash, a canonical pin, at least one web seed here or in
 * the magnet. @throws DaemonError `E_BAD_REQUEST`
 */
export function parseImportBt(body: ImportBtBody): PinnedImport {
  const bad = (message: string, cause?: unknown): DaemonError => new DaemonError('E_BAD_REQUEST', message, { cause })
  const { magnet, infohash } = body
  if (magnet !== undefined && infohash !== undefined)
    throw bad('"magnet" and "infohash" exclude one another: send one of them')
  const pin = tryParseDigest(body.manifestDigest)
  if (pin === undefined) {
    throw bad(
      'the field "manifestDigest" is the pin: "sha256:" and 64 lower-case hex characters; a magnet or infohash alone is never taken'
    )
  }
  let infohashText: string
  let named:
    | { readonly trackers: readonly string[]; readonly webseeds: readonly string[]; readonly peers: readonly string[] }
    | undefined
  if (magnet !== undefined) {
    try {
      const parsed = parseMagnet(magnet)
      named = parsed
      infohashText = `btmh:1220${Buffer.from(parsed.infohash).toString('hex')}`
    } catch (cause) {
      if (!(cause instanceof MetainfoError)) throw cause
      throw bad(`the field "magnet": ${cause.message}`, cause)
    }
  } else if (infohash !== undefined) {
    if (tryParseInfohash(infohash) === undefined)
      throw bad('the field "infohash" is "btmh:1220" and 64 lower-case hex characters')
    infohashText = infohash
  } else throw bad('the field "magnet" or "infohash" is missing: send one of them')

  const trackers = checkedHints(
    [...(body.trackers ?? []), ...(named?.trackers ?? []).filter(isTrackerUrl)],
    'trackers',
    'http, https or udp URLs',
    isTrackerUrl
  )
  const webseeds = checkedHints(
    [...(body.webseeds ?? []), ...(named?.webseeds ?? []).filter(isHttpUrl)],
    'webseeds',
    'http URLs',
    isHttpUrl
  )
  const peers = checkedHints(
    [...(body.peers ?? []), ...(named?.peers ?? []).filter(isPeerAddress)],
    'peers',
    '"host:port"',
    isPeerAddress
  )
  if (webseeds.length === 0) {
    throw bad(
      'the field "webseeds" needs at least one http URL, here or as ws= of the magnet: the pinned manifest comes from there'
    )
  }
  return { pin, infohashText, hints: { trackers, webseeds, peers } }
}

/** The daemon's side of a pinned import: where its bytes go, and where it runs. */
export interface ImportBtContext {
  readonly store: DiskBlobStore
  readonly artifacts: Artifacts
  readonly leafLayers: LeafLayers
  readonly jobs: JobRegistry
}

export interface ImportBtParts {
  readonly context: ImportBtContext
  readonly dispatcher: Dispatcher
  /** Resolves when the engine has started. */
  readonly fetch: (
    request: FetchRequest,
    context: Pick<FetchContext, 'signal' | 'onProgress'>
  ) => Promise<readonly string[]>
  readonly joinWhenDone: (manifestDigest: Sha256Digest) => Promise<void>
  readonly mayUpload: (artifact: ArtifactState | undefined) => boolean
}

/** Accepts a checked request: identity first, then bytes (spec swarm.14, swarm.15). */
export function startImportBt(request: PinnedImport, parts: ImportBtParts): Job {
  const { jobs } = parts.context
  return jobs.start({ kind: 'import-bt', ref: request.infohashText, filesTotal: 1 }, (job) =>
    new BtImport(request, parts, job).run()
  )
}

class BtImport {
  readonly #request: PinnedImport
  readonly #parts: ImportBtParts
  readonly #job: JobContext
  readonly #warnings: string[] = []
  readonly #documents: WebseedDocuments

  constructor(request: PinnedImport, parts: ImportBtParts, job: JobContext) {
    this.#request = request
    this.#parts = parts
    this.#job = job
    this.#documents = new WebseedDocuments(parts.dispatcher, request.hints.webseeds, (message) =>
      this.#warnings.push(message)
    )
  }

  async run(): Promise<JobOutcome> {
    const { pin, hints, infohashText } = this.#request
    const { context, fetch, mayUpload, joinWhenDone } = this.#parts
    const { store, artifacts } = context
    const torrent = await this.#torrent()
    const layers = await this.#documents.pieceLayers(torrent, this.#job.signal)
    // from here on ensure can go on with it, whatever happens to this job
    await writeDocument(store, torrent.manifest, this.#job.signal)
    await artifacts.record({ manifestDigest: pin, source: { kind: 'bt' }, restricted: false, hints })
    if (layers !== undefined) await this.#record(torrent, layers)
    const upload = mayUpload(await artifacts.read(pin))
    const warnings = await fetch(
      { torrent, layers, hints, upload },
      { signal: this.#job.signal, onProgress: (progress) => this.#report(torrent, progress) }
    )
    if (layers === undefined) await this.#record(torrent, layers)
    await joinWhenDone(pin)
    const all = [...this.#warnings, ...warnings]
    const files = torrent.manifest.document.files.length
    this.#job.update({ filesDone: files, filesTotal: files, bytesDone: sizeOf(torrent.manifest.document.files) })
    return {
      manifest: pin,
      result: { manifests: [pin], infohash: infohashText, skipped: 0, ...(all.length > 0 && { warnings: all }) }
    }
  }

  /** The torrent that the pinned manifest implies, which must be the requested one: no byte is asked for before that is clear. */
  async #torrent(): Promise<ArtifactTorrent & { readonly manifest: ReturnType<typeof sealedManifest> }> {
    const { pin, infohashText } = this.#request
    const { store } = this.#parts.context
    const present = await readSmallBlob(store, pin)
    const bytes = present ?? (await this.#documents.manifest(pin, this.#job.signal))
    if (bytes === undefined) {
      throw new DaemonError(
        'E_SOURCE_UNAVAILABLE',
        `no web seed gave the pinned manifest ${pin}: ${this.#warnings.join('; ')}`
      )
    }
    let manifest: ReturnType<typeof sealedManifest>
    let torrent: ArtifactTorrent
    try {
      manifest = sealedManifest(pin, bytes)
      torrent = torrentOf(manifest)
    } catch (cause) {
      throw new DaemonError('E_NOT_IMPORTABLE', `the pinned bytes are no manifest: ${(cause as Error).message}`, {
        cause
      })
    }
    if (torrent.infohashText !== infohashText) {
      throw new DaemonError(
        'E_NOT_IMPORTABLE',
        `the torrent ${infohashText} does not bind to the pin: the pinned manifest implies ${torrent.infohashText}`
      )
    }
    this.#job.update({
      filesTotal: manifest.document.files.length,
      bytesTotal: sizeOf(manifest.document.files),
      manifest: pin
    })
    return { ...torrent, manifest }
  }

  /** The record and the layers, which are pure functions of the manifest: whoever asks this node gets the same ones. */
  async #record(
    torrent: ArtifactTorrent & { readonly manifest: ReturnType<typeof sealedManifest> },
    layers: PieceLayers | undefined
  ): Promise<void> {
    const { store, artifacts, leafLayers } = this.#parts.context
    const { pin, hints } = this.#request
    const all = new Map(layers)
    for (const { digest, length, piecesRoot } of torrent.files) {
      if (piecesRoot === undefined || length <= torrent.pieceLength || digest === pin) continue
      const root = Buffer.from(piecesRoot).toString('hex')
      if (!all.has(root))
        all.set(
          root,
          await leafLayers.pieceLayer(
            digest,
            length,
            `sha256:${root}` as Sha256Digest,
            torrent.pieceLength,
            this.#job.signal
          )
        )
    }
    const bytes = pieceLayersOf(torrent, all)
    const { digest: pieceLayersDigest } = await store.ingest(oneChunk(bytes), {
      sizeBytes: bytes.length,
      signal: this.#job.signal
    })
    const record = sealRecord({ manifest: torrent.manifest, pieceLayersDigest })
    await writeDocument(store, record, this.#job.signal)
    await artifacts.record({
      manifestDigest: pin,
      record: record.digest,
      source: { kind: 'bt' },
      restricted: false,
      hints
    })
  }

  #report(torrent: ArtifactTorrent, { blobsDone, bytesDone, peers, sources, rateBytesPerSecond }: FetchProgress): void {
    const files = torrent.files.length - 1
    this.#job.update({ filesDone: Math.min(blobsDone, files), bytesDone, peers, sources, rateBytesPerSecond })
  }
}

const sizeOf = (files: readonly { readonly size: number }[]): number => files.reduce((sum, { size }) => sum + size, 0)
