import { randomInt } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { DiskBlobStore } from '@svc/cas'
import { within } from '@svc/internal-clock'
import type { DialPolicy } from '@svc/internal-net'
import { type ArtifactState, type CopyAnswer, type CopyWitness, isEvictable, policyOf } from '@svc/library/parts'
import type { Manifest, ManifestFile } from '@svc/manifest'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import { urlBelow, type WebseedReading } from './webseed-documents.ts'

/** A stranger's record may name a hundred. */
const MAX_ASKED = 4
const TIMEOUT_MS = 20_000
/** Of each file, at an unpredictable place: different weights differ nearly everywhere. */
const SAMPLE_BYTES = 4 << 10
/** The largest bound of `randomInt`. */
const MAX_RANDOM = 2 ** 48 - 1

export interface WebseedCopiesDeps {
  readonly store: Pick<DiskBlobStore, 'blobPath'>
  /** `Listeners.mark` */
  readonly mark: string | undefined
  readonly reading: WebseedReading
  readonly torrents: Pick<ArtifactTorrents, 'of'>
}

interface FileSample {
  readonly start: number
  readonly length: number
  /** Undefined for an absent file, of which only the size is compared. */
  readonly bytes?: Buffer
}

/** Whether the web servers and buckets that an artifact came from still have its weights, by their sizes and a sample of each. */
export class WebseedCopies implements CopyWitness {
  readonly #deps: WebseedCopiesDeps

  constructor(deps: WebseedCopiesDeps) {
    this.#deps = deps
  }

  async ask(manifest: Manifest, { manifestDigest, hints }: ArtifactState, signal: AbortSignal): Promise<CopyAnswer[]> {
    const { reading, torrents } = this.#deps
    const torrent = hints.webseeds.length === 0 ? undefined : await torrents.of(manifestDigest)
    if (torrent === undefined) return []
    const answers: CopyAnswer[] = []
    const weights = manifest.files.filter(isEvictable)
    const samples = await Promise.all(weights.map((file) => this.#sampleOf(file)))
    for (const where of hints.webseeds.slice(0, MAX_ASKED)) {
      const place = { kind: 'webseed', where } as const
      try {
        let lacking: string | undefined
        for (const [i, { name, size }] of weights.entries()) {
          const path = [torrent.name, ...name.split('/')].map(encodeURIComponent).join('/')
          const url = new URL(urlBelow(where, path))
          const ask = { url, policy: policyOf(hints, where) }
          const has = (limited: AbortSignal): Promise<boolean> => this.#has(ask, size, samples[i]!, limited)
          if (lacking === undefined && !(await within(reading.clock, TIMEOUT_MS, signal, has))) lacking = name
        }
        answers.push(
          lacking === undefined
            ? { ...place, is: 'there' }
            : { ...place, is: 'gone', why: `its ${JSON.stringify(lacking)} is missing or different` }
        )
      } catch (error) {
        signal.throwIfAborted()
        answers.push({ ...place, is: 'silent', why: (error as Error).message })
      }
    }
    return answers
  }

  /** Reads past the store, since asking is not a use that keeps a blob. @throws errors of the disk */
  async #sampleOf({ digest, size }: ManifestFile): Promise<FileSample> {
    const file = await open(this.#deps.store.blobPath(digest)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (file === undefined) return { start: 0, length: 1 }
    try {
      const start = randomInt(Math.min(MAX_RANDOM, Math.max(1, size - SAMPLE_BYTES)))
      const length = Math.min(SAMPLE_BYTES, size)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start)
      return { start, length, bytes: buffer.subarray(0, bytesRead) }
    } finally {
      await file.close()
    }
  }

  /** Whether it gives the sample, and says this size. Redirects are not followed, as for documents. */
  async #has(
    { url, policy }: { readonly url: URL; readonly policy: DialPolicy },
    sizeBytes: number,
    { start, length, bytes }: FileSample,
    signal: AbortSignal
  ): Promise<boolean> {
    const { mark, reading } = this.#deps
    const { web, keys } = reading
    const part = `${start}-${start + length - 1}`
    const range = { range: `bytes=${part}` }
    const signature = await keys.headersFor(url, range)
    const headers = { ...range, ...signature, ...(mark !== undefined && { 'user-agent': `svc (${mark})` }) }
    const answer = await web.send({ url, signal, headers, policy })
    try {
      if (answer.status >= 500 || answer.status === 429) throw new Error(`answered ${answer.status}`)
      if (answer.status !== 206 || answer.header('content-range') !== `bytes ${part}/${sizeBytes}`) return false
      const given = await answer.bytes(length)
      return given.length === length && (bytes === undefined || given.equals(bytes))
    } finally {
      answer.destroy()
    }
  }
}
