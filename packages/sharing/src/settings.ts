/** How a store takes part in swarms. Whoever changes `seed` or the limit tells the client so. */
export interface SwarmSettings {
  /** Whether complete artifacts are announced and given. */
  readonly seed: boolean
  /** To peers and webseed clients together; 0: no limit. */
  readonly uploadLimitBytesPerSecond: number
  /** Whether imports are announced at once, and not only from the next start on. */
  readonly seedOnImport: boolean
  /** Whether artifacts that needed access are announced as well. */
  readonly seedRestricted: boolean
  /** Whether a start announces what it did not hash again. */
  readonly noSeedVerify: boolean
  readonly dht: boolean
  /** `host:port`; undefined: the public ones. */
  readonly dhtBootstrap: readonly string[] | undefined
  /** Whether peers of the local network are found by multicast. */
  readonly lsd: boolean
  /** Announced to in addition to those of each artifact. */
  readonly trackers: readonly string[]
  /** A fetch without a byte for this long fails. */
  readonly fillTimeoutMs: number
  /** Address ranges, such as `10.0.0.0/8`. */
  readonly trusted: readonly string[]
  readonly zone: string | undefined
}
