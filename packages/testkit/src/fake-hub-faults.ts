/** The kind of request that a fault applies to. */
export type FakeHubStage = 'search' | 'info' | 'tree' | 'resolve' | 'cdn' | 'xet-token' | 'account'

export interface FakeHubRequest {
  readonly origin: 'hub' | 'cdn'
  readonly stage: FakeHubStage | 'other'
  readonly method: string
  /** As received. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The requested file, if the request is about one. */
  readonly path?: string
}

/** A tree entry as hubs list it; tests change it to make hostile listings. */
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
  /** Look at the request only then. */
  | { readonly kind: 'hold'; readonly until: Promise<void> }
  /** Close the connection after this many bytes of the body. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Send this many bytes of the body, then nothing. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  /** Send the body in small steps. */
  | { readonly kind: 'drip'; readonly stepBytes: number; readonly everyMs: number }
  /** Flip one bit of the body: the right length, but wrong bytes. */
  | { readonly kind: 'wrong-bytes'; readonly atByte?: number }
  /** A well-formed response whose body, and Content-Length, lack the last bytes. */
  | { readonly kind: 'short-body'; readonly missingBytes: number }
  /** The whole file with 200, whatever range was requested. */
  | { readonly kind: 'ignore-range' }
  | { readonly kind: 'content-range'; readonly value: string | undefined }
  | { readonly kind: 'etag'; readonly value: string }
  /** An arbitrary head, e.g. 429 with its variants of headers, 5xx, 401 with `x-error-code`. */
  | {
      readonly kind: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
  /** `self` stands for the requested address. */
  | { readonly kind: 'redirect'; readonly location: string; readonly status?: number }
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  /** Change the entries of a tree page. */
  | { readonly kind: 'tree'; readonly edit: (entries: FakeTreeEntry[]) => unknown }
  /** Sets the address of the next page. */
  | { readonly kind: 'link'; readonly href: string }

export interface FakeHubFaultRule {
  readonly stage: FakeHubStage
  /** Only requests about this file. */
  readonly path?: string
  /** Only requests whose range starts here. */
  readonly rangeStart?: number
  /** Let this many matching requests pass first. */
  readonly skip?: number
  /** How often it applies; default: always. */
  readonly times?: number
  readonly fault: FakeHubFault
}

/** Chooses a fault for a request, or none. */
export type FakeHubFaultPlan = (request: FakeHubRequest) => FakeHubFault | undefined

/** Applies the first rule that matches and is not used up. */
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

/** A small seeded generator (mulberry32): equal seeds give equal faults for equal sequences of requests. */
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

/** Applies a random fault suitable for the stage to each request, with the given probability. */
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
