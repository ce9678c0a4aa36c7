/** What is withheld consists of this. */
export const MARKER = 'WITHHELD-from-strangers;'
export const HUB_TOKEN = 'hf_ofTheOwner'
/** Repositories `acme/names-…`, whose listings are as long as listings may be. */
export const LONG_LISTINGS = 64
/** Repositories `acme/forged-…`, whose signatures take long to refuse. */
export const FORGED = 12
export const HOSTS = Array.from({ length: 10 }, (_, i) => `127.0.0.${20 + i}`)

export type ToHub = { readonly kind: 'commit'; readonly repo: string; readonly seed: number }

/** A GGUF by name and head, filled with {@link MARKER}. */
export function withheldGguf(sizeBytes: number, salt: string): Buffer {
  const head = Buffer.concat([Buffer.from('GGUF'), Buffer.from([3, 0, 0, 0]), Buffer.alloc(16), Buffer.from(salt)])
  return Buffer.concat([head, Buffer.alloc(sizeBytes - head.length, MARKER)])
}

/** What the hostile hosts know of the daemon: all that strangers could find out, and more. */
export interface HostileData {
  readonly webseedPort: number
  readonly webseedPath: string
  readonly hubPort: number
  readonly ociPort: number
  readonly metricsPort: number
  readonly s3Port: number
  /** Of `svc ui`. */
  readonly ui: { readonly host: string; readonly port: number }
  readonly peerPort: number
  readonly dhtPort: number
  /** Of a model that everybody may have. */
  readonly digest: string
  readonly root: Uint8Array
  readonly handshake: Uint8Array
  readonly prCommit: string
  readonly withheld: readonly {
    readonly hubRepo?: string
    readonly ociName: string
    readonly quant: string
    readonly digests: readonly string[]
    readonly torrentName: string
    readonly infohash: string
  }[]
}

/** What a hostile host did and saw, by the name of the attack. */
export interface HostileReport {
  readonly done: Readonly<Record<string, number>>
  /** Attacks in which withheld bytes came. */
  readonly leaks: readonly string[]
}

export const HONEST_HOST = '127.0.0.2'

/** By door: how long its answers took, and what was not served. */
export type HonestReport = Readonly<
  Record<string, { readonly timesMs: readonly number[]; readonly failures: readonly string[] }>
>
