import type { ArtifactTorrent, Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { CopyAnswer, CopyWitness } from '../jobs/copies.ts'
import type { ArtifactState } from '../library/artifacts.ts'
import { isEvictable } from '../library/eviction.ts'
import type { WebseedReading } from './pinned-manifest.ts'

/** Of one artifact: a record of strangers may name a hundred. */
const MAX_ASKED = 4
const TIMEOUT_MS = 20_000

export interface WebseedCopiesDeps {
  readonly reading: () => WebseedReading
  readonly torrentOf: (manifestDigest: Sha256Digest) => Promise<ArtifactTorrent | undefined>
}

/** Whether the web servers and buckets that an artifact came from have files of its weights' sizes still. */
export class WebseedCopies implements CopyWitness {
  readonly #deps: WebseedCopiesDeps

  constructor(deps: WebseedCopiesDeps) {
    this.#deps = deps
  }

  async ask(manifest: Manifest, { manifestDigest, hints }: ArtifactState, signal: AbortSignal): Promise<CopyAnswer[]> {
    const torrent = hints.webseeds.length === 0 ? undefined : await this.#deps.torrentOf(manifestDigest)
    const answers: CopyAnswer[] = []
    for (const where of torrent === undefined ? [] : hints.webseeds.slice(0, MAX_ASKED)) {
      const place = { kind: 'webseed', where } as const
      try {
        let lacking: string | undefined
        for (const { name, size } of manifest.files.filter(isEvictable)) {
          const path = [torrent!.name, ...name.split('/')].map(encodeURIComponent).join('/')
          const url = new URL(`${where.replace(/\/+$/, '')}/${path}`)
          if (lacking === undefined && !(await this.#has(url, size, signal))) lacking = name
        }
        answers.push(
          lacking === undefined
            ? { ...place, is: 'there' }
            : { ...place, is: 'gone', why: `it does not give ${JSON.stringify(lacking)} in its size` }
        )
      } catch (error) {
        signal.throwIfAborted()
        answers.push({ ...place, is: 'silent', why: (error as Error).message })
      }
    }
    return answers
  }

  /** Its first byte comes, of so many. Redirects are not followed, as for its documents. */
  async #has(url: URL, sizeBytes: number, outer: AbortSignal): Promise<boolean> {
    const { web, keys } = this.#deps.reading()
    const range = { range: 'bytes=0-0' }
    const signal = AbortSignal.any([outer, AbortSignal.timeout(TIMEOUT_MS)])
    const signature = await keys.headersFor(url, range)
    const answer = await web.send({ url, signal, headers: { ...range, ...signature }, policy: 'owner' })
    try {
      if (answer.status >= 500 || answer.status === 429) throw new Error(`answered ${answer.status}`)
      return answer.status === 206 && answer.header('content-range') === `bytes 0-0/${sizeBytes}`
    } finally {
      answer.destroy()
    }
  }
}
