import { hash } from 'node:crypto'
import { type Clock, within } from '@svc/internal-clock'
import { diskErrorOf, type HttpClient, isIdentity } from '@svc/internal-http'
import { policyOf, type SwarmHints } from '@svc/library/parts'
import { type ArtifactTorrent, MAX_DOCUMENT_BYTES, manifestPath, torrentName } from '@svc/manifest'
import { formatInfohash, type PieceLayers, type TorrentInfo, toHex } from '@svc/metainfo'
import { digestHex, type Sha256Digest } from '@svc/ref'
import type { ParseAnswer } from './answers.ts'
import type { WebseedKeys } from './webseed-keys.ts'

/** A body that arrives slowly is abandoned after this time, however small it is. */
const TOTAL_TIMEOUT_MS = 120_000

export interface WebseedReading {
  readonly web: HttpClient
  /** Signs requests to webseeds that have a key. */
  readonly keys: Pick<WebseedKeys, 'headersFor'>
  readonly clock: Pick<Clock, 'now' | 'after'>
  readonly parse: ParseAnswer
}

/** `Cache-Control: private`, perhaps among other directives. */
const MARK = /(?:^|[\s,])private(?:$|[\s,=])/i

interface Answered {
  readonly bytes: Uint8Array
  /** The server says that it is not for others. */
  readonly isMarked: boolean
}

class StatusError extends Error {
  readonly status: number

  constructor(status: number, why = '') {
    super(`answered ${status}${why}`)
    this.status = status
  }
}

/** There is none, or (in buckets without listing) that is unknown. */
const NO_LISTING: readonly number[] = [403, 404, 410]

/** Reports why a webseed was unusable, for the result's warnings. */
export type Complain = (message: string) => void

/** Requests from webseeds the documents that are needed before peers can be asked; a digest or a root verifies each. */
export class WebseedDocuments {
  readonly #reading: WebseedReading
  readonly #hints: Pick<SwarmHints, 'webseeds' | 'others'>
  readonly #complain: Complain
  /** Whether a request was signed. */
  isSigned = false
  /** Who marked the model as not for others, and how, as `svc publish --withheld` does (spec add.39). */
  markedBy: string | undefined
  /** The webseed that gave the manifest. */
  #publisher: string | undefined

  constructor(reading: WebseedReading, hints: Pick<SwarmHints, 'webseeds' | 'others'>, complain: Complain) {
    this.#reading = reading
    this.#hints = hints
    this.#complain = complain
  }

  /** The bytes that match the pin, from the first webseed that has them; undefined when none has. */
  manifest(pin: Sha256Digest, signal: AbortSignal): Promise<Uint8Array | undefined> {
    return this.#first(`${torrentName(pin)}/${manifestPath(pin)}`, MAX_DOCUMENT_BYTES, signal, (bytes) => {
      const actual = hash('sha256', bytes)
      if (actual !== digestHex(pin))
        throw new Error(`sent bytes that do not match the pinned manifest (sha256:${actual})`)
      return bytes
    })
  }

  /**
   * Reads what a publication's listing says about a model: the listing of the webseed that gave the manifest, or if the
   * manifest was already here, of the first that answers.
   */
  async readListing(pin: Sha256Digest, signal: AbortSignal): Promise<void> {
    const { LISTING_KEY, PublishError } = await import('@svc/publish')
    for (const webseed of this.#publisher === undefined ? this.#hints.webseeds : [this.#publisher]) {
      try {
        const { bytes } = await this.#read(webseed, LISTING_KEY, MAX_DOCUMENT_BYTES, signal)
        if (await this.#reading.parse('withheld', bytes, { pin, at: webseed }))
          this.markedBy ??= `webseed ${webseed} lists it as withheld`
        return
      } catch (error) {
        signal.throwIfAborted()
        if (diskErrorOf(error) !== undefined) throw error
        // an unrelated file of that name says nothing
        if (error instanceof PublishError || (error instanceof StatusError && NO_LISTING.includes(error.status))) return
        this.#complain(`webseed ${webseed}: its ${LISTING_KEY} could not be read: ${(error as Error).message}`)
      }
    }
  }

  /** Piece layers, each verified against its root; undefined when no webseed has all of them, empty if none are needed. */
  async pieceLayers(torrent: ArtifactTorrent, signal: AbortSignal): Promise<PieceLayers | undefined> {
    if (torrent.files.every(({ length }) => length <= torrent.pieceLength)) return new Map()
    // 32 bytes per piece, each root as a key, and the encoding around them
    const bound = torrent.pieceCount * 32 + torrent.files.length * 64 + 1024
    return this.#first(`bt/piece-layers/${toHex(torrent.infohash)}`, bound, signal, async (bytes) => {
      const { files, pieceLength } = torrent
      const { layers, missing } = await this.#reading.parse('pieceLayers', bytes, { files, pieceLength })
      if (missing.length > 0) throw new Error('sent incomplete piece layers')
      return layers
    })
  }

  /** The info dictionary with this infohash, from the first webseed that has it, and which webseed that is. */
  info(
    infohashText: string,
    signal: AbortSignal
  ): Promise<{ readonly info: TorrentInfo; readonly webseed: string } | undefined> {
    const hex = infohashText.slice('btmh:1220'.length)
    return this.#first(`bt/${hex}.torrent`, MAX_DOCUMENT_BYTES, signal, async (bytes, webseed) => {
      const info = await this.#reading.parse('torrent', bytes)
      if (formatInfohash(info.infohash) !== infohashText) throw new Error('sent another torrent')
      return { info, webseed }
    })
  }

  async #first<T>(
    path: string,
    maxBytes: number,
    signal: AbortSignal,
    read: (bytes: Uint8Array, webseed: string) => T | Promise<T>
  ): Promise<T | undefined> {
    for (const webseed of this.#hints.webseeds) {
      try {
        const { bytes, isMarked } = await this.#read(webseed, path, maxBytes, signal)
        const document = await read(bytes, webseed)
        // wrong bytes from one source say nothing about these
        if (isMarked) this.markedBy ??= `webseed ${webseed} answers with "Cache-Control: private"`
        this.#publisher ??= webseed
        return document
      } catch (error) {
        signal.throwIfAborted()
        if (diskErrorOf(error) !== undefined) throw error
        this.#complain(`webseed ${webseed}: ${(error as Error).message}`)
      }
    }
    return undefined
  }

  async #read(webseed: string, path: string, maxBytes: number, outer: AbortSignal): Promise<Answered> {
    const { clock } = this.#reading
    return within(clock, TOTAL_TIMEOUT_MS, outer, (signal) => this.#get(webseed, path, maxBytes, signal))
  }

  /** Redirects are not followed: a webseed serves its own files, and a stranger must not direct us elsewhere. */
  async #get(webseed: string, path: string, maxBytes: number, signal: AbortSignal): Promise<Answered> {
    const { web, keys, clock } = this.#reading
    const url = new URL(urlBelow(webseed, path))
    const signature = await keys.headersFor(url, {})
    this.isSigned ||= signature !== undefined
    const answer = await web.send({ url, signal, headers: signature, policy: policyOf(this.#hints, webseed) })
    const { status, headers } = answer
    try {
      if (status !== 200) {
        const why = signature !== undefined && status === 403 ? clockTrouble(answer.header('date'), clock.now()) : ''
        throw new StatusError(status, why)
      }
      if (!isIdentity(headers)) throw new Error('sent an encoded body')
      return { bytes: await answer.bytes(maxBytes), isMarked: MARK.test(answer.header('cache-control') ?? '') }
    } finally {
      answer.destroy()
    }
  }
}

export const urlBelow = (webseed: string, path: string): string => `${webseed.replace(/\/+$/, '')}/${path}`

/** Signatures are valid for 15 minutes: with a clock that is off by more, every key seems wrong. */
function clockTrouble(date: string | undefined, nowMs: number): string {
  const seconds = Math.round((Date.parse(String(date)) - nowMs) / 1000)
  if (!(Math.abs(seconds) >= 300)) return ' to a signed request: the key is wrong, or has no permission to read this'
  return `: the clocks here and there differ by ${Math.abs(seconds)} s, which makes signatures invalid; set the clock`
}
