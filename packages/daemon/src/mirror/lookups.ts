import { HostQueue } from './host-queue.ts'
import { later, NotNowError, type Upstream, type UpstreamRepo } from './upstream.ts'

/** Limit of concurrent listings. */
const MAX_AT_ONCE = 4
const MAX_WAITING = 32
/** How long a branch is cached: it moves, unlike a commit. */
const BRANCH_MS = 60_000
/** How long the absence of a repository, or the ban on sharing it, is cached. */
const ABSENT_MS = 60_000
const UNAVAILABLE_MS = 15_000
const MAX_ABSENT = 1_000
/** For repositories with thousands of files, each takes a few MB. */
const MAX_KNOWN = 64

/** Errors after which the repository does not exist for clients of the mirror. */
const ABSENT_CODES: readonly unknown[] = ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_NOT_IMPORTABLE', 'E_BAD_REQUEST']

type Outcome = UpstreamRepo | 'absent' | NotNowError

interface Looked {
  readonly atMs: number
  readonly outcome: Outcome
}

/** Caches what is known about upstream repositories. Concurrent requests for the same one share a single lookup. */
export class Lookups {
  readonly #upstream: Pick<Upstream, 'look'>
  readonly #nowMs: () => number
  readonly #queue = new HostQueue(MAX_AT_ONCE, MAX_WAITING, () => later('others are asking for models too', 5))
  readonly #known = new Map<string, Looked>()
  readonly #absent = new Map<string, Looked>()
  readonly #looking = new Map<string, Promise<UpstreamRepo | undefined>>()
  #total = 0

  constructor({ upstream, nowMs }: { readonly upstream: Pick<Upstream, 'look'>; readonly nowMs: () => number }) {
    this.#upstream = upstream
    this.#nowMs = nowMs
  }

  /** Number of lookups that contacted the hub. */
  get total(): number {
    return this.#total
  }

  /** For a client at IP address `host`. @throws NotNowError */
  async look(repo: string, revision: string | undefined, host: string): Promise<UpstreamRepo | undefined> {
    const key = keyOf(repo, revision)
    const known = this.#fresh(key)
    if (known !== undefined) return resultOf(known.outcome)
    const looking = this.#looking.get(key)
    if (looking !== undefined) return looking
    const work = this.#queue.run(host, () => this.#ask(key, repo, revision))
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
    const keptMs =
      outcome === 'absent' ? ABSENT_MS : outcome instanceof NotNowError ? UNAVAILABLE_MS : keptOf(key, outcome)
    return this.#nowMs() - atMs < keptMs ? looked : undefined
  }

  async #ask(key: string, repo: string, revision: string | undefined): Promise<UpstreamRepo | undefined> {
    this.#total++
    const outcome = await this.#upstream.look(repo, revision).catch((error: unknown): Outcome => {
      const { code, message } = error as { code?: unknown; message: string }
      if (ABSENT_CODES.includes(code)) return 'absent'
      const wait = code === 'E_RATE_LIMITED' ? 30 : 10
      const status = code === 'E_RATE_LIMITED' ? 429 : 503
      return new NotNowError(status, 'E_SOURCE_UNAVAILABLE', `the hub cannot be asked now: ${message}`, wait)
    })
    const looked = { atMs: this.#nowMs(), outcome }
    this.#known.delete(key)
    this.#absent.delete(key)
    if (typeof outcome === 'string' || outcome instanceof NotNowError) {
      if (this.#absent.size >= MAX_ABSENT) this.#absent.delete(this.#absent.keys().next().value!)
      this.#absent.set(key, looked)
    } else {
      for (const each of [keyOf(repo, outcome.commit), key]) {
        this.#known.delete(each)
        if (this.#known.size >= MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!)
        this.#known.set(each, looked)
      }
    }
    return resultOf(outcome)
  }
}

const keyOf = (repo: string, revision: string | undefined): string => `${repo.toLowerCase()} ${revision ?? ''}`
const keptOf = (key: string, { commit }: UpstreamRepo): number => (key.endsWith(` ${commit}`) ? Infinity : BRANCH_MS)

function resultOf(outcome: Outcome): UpstreamRepo | undefined {
  if (outcome === 'absent') return undefined
  if (outcome instanceof NotNowError) throw outcome
  return outcome
}
