import { HostQueue } from './host-queue.ts'
import { type LookOptions, later, NotNowError, type Upstream, type UpstreamRepo } from './upstream.ts'

/** Listings that are read at once: a long one takes memory and time of the one thread. */
const LIMITS = { atOnce: 2, maxWaiting: 32 }
/** How long a repository is taken as it was: also one at a commit, which may have become private since. */
const KNOWN_MS = 60_000
/** How long the absence of a repository, or the ban on sharing it, is cached. */
const ABSENT_MS = 60_000
const UNAVAILABLE_MS = 15_000
const MAX_ABSENT = 1_000
/** Of names and what belongs to each. */
const MAX_KNOWN_BYTES = 16 << 20
const FILE_BYTES = 400

/** Errors after which the repository does not exist for clients of the mirror. */
const ABSENT_CODES: readonly unknown[] = ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_NOT_IMPORTABLE', 'E_BAD_REQUEST']

type Outcome = UpstreamRepo | 'absent' | NotNowError

interface Looked {
  readonly atMs: number
  readonly outcome: Outcome
}

/** What is looked for, and how. */
export interface LookFor extends LookOptions {
  readonly repo: string
  /** Undefined: the default branch. */
  readonly revision: string | undefined
}

/** Caches what is known about upstream repositories. Concurrent requests for the same one share a single lookup. */
export class Lookups {
  readonly #upstream: Pick<Upstream, 'look'>
  readonly #nowMs: () => number
  readonly #queue: HostQueue
  readonly #known = new Map<string, Looked & { readonly bytes: number }>()
  readonly #absent = new Map<string, Looked>()
  readonly #looking = new Map<string, Promise<UpstreamRepo | undefined>>()
  #knownBytes = 0
  #total = 0

  constructor({ upstream, nowMs }: { readonly upstream: Pick<Upstream, 'look'>; readonly nowMs: () => number }) {
    this.#upstream = upstream
    this.#nowMs = nowMs
    this.#queue = new HostQueue(LIMITS, nowMs, () => later('others are asking for models too', 5))
  }

  /** Number of lookups that contacted the hub. */
  get total(): number {
    return this.#total
  }

  /** For a client at IP address `host`. @throws NotNowError */
  async look(wanted: LookFor, host: string): Promise<UpstreamRepo | undefined> {
    const key = keyOf(wanted)
    const known = this.#fresh(key)
    if (known !== undefined) return resultOf(known.outcome)
    const looking = this.#looking.get(key)
    if (looking !== undefined) return looking
    const work = this.#queue.run(host, () => this.#ask(key, wanted))
    this.#looking.set(key, work)
    try {
      return await work
    } finally {
      this.#looking.delete(key)
    }
  }

  #fresh(key: string): Looked | undefined {
    const looked = this.#known.get(key) ?? this.#absent.get(key)
    if (looked === undefined) return undefined
    const { outcome, atMs } = looked
    const keptMs = outcome === 'absent' ? ABSENT_MS : outcome instanceof NotNowError ? UNAVAILABLE_MS : KNOWN_MS
    return this.#nowMs() - atMs < keptMs ? looked : undefined
  }

  async #ask(key: string, wanted: LookFor): Promise<UpstreamRepo | undefined> {
    this.#total++
    const outcome = await this.#upstream.look(wanted.repo, wanted.revision, wanted).catch((error: unknown): Outcome => {
      const { code, message } = error as { code?: unknown; message: string }
      if (ABSENT_CODES.includes(code)) return 'absent'
      const wait = code === 'E_RATE_LIMITED' ? 30 : 10
      const status = code === 'E_RATE_LIMITED' ? 429 : 503
      return new NotNowError(status, 'E_SOURCE_UNAVAILABLE', `the hub cannot be asked now: ${message}`, wait)
    })
    const looked = { atMs: this.#nowMs(), outcome }
    this.#drop(key)
    this.#absent.delete(key)
    if (typeof outcome === 'string' || outcome instanceof NotNowError) {
      if (this.#absent.size >= MAX_ABSENT) this.#absent.delete(this.#absent.keys().next().value!)
      this.#absent.set(key, looked)
    } else {
      this.#keep(keyOf({ ...wanted, revision: outcome.commit }), looked, outcome)
      this.#keep(key, looked, outcome)
    }
    return resultOf(outcome)
  }

  #keep(key: string, looked: Looked, { files }: UpstreamRepo): void {
    this.#drop(key)
    let bytes = FILE_BYTES
    for (const name of files.keys()) bytes += FILE_BYTES + 2 * name.length
    this.#known.set(key, { ...looked, bytes })
    this.#knownBytes += bytes
    for (const oldest of this.#known.keys()) {
      if (this.#knownBytes <= MAX_KNOWN_BYTES) break
      this.#drop(oldest)
    }
  }

  #drop(key: string): void {
    this.#knownBytes -= this.#known.get(key)?.bytes ?? 0
    this.#known.delete(key)
  }
}

const keyOf = ({ repo, revision, isNamedOnly, branch }: LookFor): string =>
  `${repo.toLowerCase()} ${revision ?? ''} ${isNamedOnly} ${branch?.at}`

function resultOf(outcome: Outcome): UpstreamRepo | undefined {
  if (outcome === 'absent') return undefined
  if (outcome instanceof NotNowError) throw outcome
  return outcome
}
