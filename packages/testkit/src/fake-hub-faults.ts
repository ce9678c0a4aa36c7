/** Which kind of request a fault is for. */
export type FakeHubStage = 'info' | 'tree' | 'resolve' | 'cdn'

export interface FakeHubRequest {
  readonly origin: 'hub' | 'cdn'
  readonly stage: FakeHubStage | 'other'
  readonly method: string
  /** As it came over the wire. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Of the file that was asked for, where it is about one. */
  readonly path?: string
}

/** A tree entry as hubs list it; hostile listings are made by changing these. */
export interface FakeTreeEntry {
  type: unknown
  oid: unknown
  size: unknown
  path: unknown
  lfs?: unknown
  xetHash?: unknown
}

export type FakeHubFault =
  /** Close the connection before the head. */
  | { readonly kind: 'refuse' }
  /** Close the connection after so many bytes of the body. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Send so many bytes of the body, then nothing any more. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  /** Send the body in small steps. */
  | { readonly kind: 'drip'; readonly stepBytes: number; readonly everyMs: number }
  /** Flip one bit of the body: right length, wrong bytes. */
  | { readonly kind: 'wrong-bytes'; readonly atByte?: number }
  /** A well-formed answer whose body lacks its last bytes; its head says so. */
  | { readonly kind: 'short-body'; readonly missingBytes: number }
  /** The whole file with 200, whatever range was asked. */
  | { readonly kind: 'ignore-range' }
  | { readonly kind: 'content-range'; readonly value: string | undefined }
  | { readonly kind: 'etag'; readonly value: string }
  /** Any head; e.g. 429 with its header variants, 5xx, 401 with `x-error-code`. */
  | {
      readonly kind: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
  /** `self` is the address that was asked for. */
  | { readonly kind: 'redirect'; readonly location: string; readonly status?: number }
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  /** Change the entries of a tree page. */
  | { readonly kind: 'tree'; readonly edit: (entries: FakeTreeEntry[]) => unknown }
  /** The address of the next page. */
  | { readonly kind: 'link'; readonly href: string }

export interface FakeHubFaultRule {
  readonly stage: FakeHubStage
  /** Only requests about this file. */
  readonly path?: string
  /** Only requests whose Range starts there. */
  readonly rangeStart?: number
  /** Let so many matching requests pass first. */
  readonly skip?: number
  /** How often it strikes; always when absent. */
  readonly times?: number
  readonly fault: FakeHubFault
}

/** Chooses a fault for a request, or none. */
export type FakeHubFaultPlan = (request: FakeHubRequest) => FakeHubFault | undefined

/** Rules in order; the first that matches and is not used up strikes. */
export function scriptedFaults(rules: readonly FakeHubFaultRule[]): FakeHubFaultPlan {
  const seen = rules.map(() => 0)
  return (request) => {
    for (const [i, rule] of rules.entries()) {
      if (rule.stage !== request.stage) continue
      if (rule.path !== undefined && rule.path !== request.path) continue
      if (rule.rangeStart !== undefined && !request.headers.range?.startsWith(`bytes=${rule.rangeStart}-`)) continue
      const count = seen[i] as number
      seen[i] = count + 1
      if (count < (rule.skip ?? 0)) continue
      if (rule.times !== undefined && count >= (rule.skip ?? 0) + rule.times) continue
      return rule.fault
    }
    return undefined
  }
}

/** A small seeded generator (mulberry32): the same seed gives the same faults for the same order of requests. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Strikes each request with the given probability, with any fault that suits its stage. */
export function randomFaults(seed: number, probability: number): FakeHubFaultPlan {
  const random = seededRandom(seed)
  const below = (n: number) => Math.floor(random() * n)
  const anywhere: (() => FakeHubFault)[] = [
    () => ({ kind: 'refuse' }),
    () => ({ kind: 'cut', afterBytes: below(4_096) }),
    () => ({ kind: 'status', status: [500, 502, 503, 504, 408][below(5)] as number }),
    () => ({ kind: 'status', status: 429, headers: { 'retry-after': '0' } }),
    () => ({ kind: 'status', status: 429, headers: { ratelimit: '"api";r=0;t=0' } }),
    () => ({ kind: 'headers', headers: { 'content-encoding': 'gzip' } }),
    () => ({ kind: 'stall', afterBytes: below(1_000) })
  ]
  const onBytes: (() => FakeHubFault)[] = [
    ...anywhere,
    () => ({ kind: 'cut', afterBytes: below(300_000) }),
    () => ({ kind: 'wrong-bytes', atByte: below(100_000) }),
    () => ({ kind: 'short-body', missingBytes: 1 + below(50) }),
    () => ({ kind: 'ignore-range' }),
    () => ({ kind: 'content-range', value: `bytes ${below(9)}-${9 + below(99)}/${below(1_000)}` }),
    () => ({ kind: 'etag', value: `"${below(1_000_000)}"` }),
    () => ({ kind: 'status', status: 403 })
  ]
  return (request) => {
    if (random() >= probability) return undefined
    const choice = request.stage === 'cdn' ? onBytes : anywhere
    return (choice[below(choice.length)] as () => FakeHubFault)()
  }
}
