import type { Victim } from './tagged.ts'

/**
 * How an artifact came to a machine. `public`: anybody would have been given all its bytes; `own`: the owner's own files;
 * `credential`: a token, a login or a key was needed; `unknown`: nobody said, or whoever packed it marked it; `unasked`: of a
 * cache whose repository was closed, which the hub is asked of again; `named`: a document named bytes that were here, and
 * whoever wrote it gave none of them; `either`: what the rule makes of it is left open here.
 */
export type Arrival = 'public' | 'own' | 'credential' | 'unknown' | 'unasked' | 'named' | 'either'

/** What may be asked of an artifact: `no` is what this test is about. */
export type May = 'yes' | 'no' | 'either'

/** What lies beside an artifact, and which tags of that leave with it. */
export interface Beside {
  readonly tags: ReadonlySet<string>
  readonly beside: ReadonlySet<string>
}

/** What the model knows of an artifact on one machine. */
export interface Known {
  readonly manifest: string
  /** Tags of the bytes that leave with it: of its files, and of companions that loaders read. */
  readonly tags: Set<string>
  /** Digests, in hex, of what lies beside it. */
  readonly beside: Set<string>
  /** The infohash of the torrent of BitTorrent v1 that it came from. */
  v1?: string
  /** Infohashes of torrents of what lies beside it, as they were given out. */
  readonly pins: Set<string>
  readonly files: readonly { readonly name: string; readonly digest: string }[]
  readonly torrent: { readonly name: string; readonly infohash: string }
  /** Of the hub, by the number that it keeps when it is renamed, and by the name that it had then. */
  repo?: { readonly number: number; readonly name: string; readonly commit: string }
  /** Whether the latest import says that it is of that repository; a layout of it does not. */
  isOfHub: boolean
  /** Digests, in hex, that its files name: a stranger's artifact may have a document of another as a file. */
  readonly mentions: ReadonlySet<string>
  /** Of a stranger's pin: what it names and its swarm does not give. */
  readonly named?: readonly Victim[]
  /** The repository that a stranger's pin says it is of, where the hub has none of that name. */
  readonly claims?: { readonly name: string; readonly commit: string }
  /** The name that a stranger's pin was to get, under which a mirror shows what comes in. */
  awaits?: string
  /** Names, `ns/name:quant`, that it ever had. */
  readonly refs: Set<string>
  arrivals: Arrival[]
  decision: 'none' | 'private' | 'shared' | 'either'
  /** Others might have it before the latest change, and its leaving the swarm may take a moment. */
  isLeaving: boolean
}

/** The verdict of the rule, from what happened alone. */
function verdict({ arrivals, decision }: Known): May {
  if (decision === 'private') return 'no'
  const open = arrivals.filter((each) => each === 'public' || each === 'own')
  if (open.length === 0 && !arrivals.includes('either')) {
    // a credential counts until a public source gives the bytes, and a document gives none
    const isKeyed = arrivals.every((each) => each === 'credential' || each === 'named')
    if ((isKeyed && arrivals.includes('credential')) || decision === 'none' || arrivals.length === 0) return 'no'
    return 'either'
  }
  return open.length === arrivals.length && decision !== 'either' ? 'yes' : 'either'
}

/** Who may have what of one machine. */
export class Oracle {
  readonly artifacts = new Map<string, Known>()
  /** The artifact that each name has now: `ns/name` to quant to manifest. */
  names: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map()
  /** Tags of what each repository of the hub gave to this machine while everybody might have it. */
  readonly givenByHub = new Map<number, Set<string>>()
  /** Digests, in hex, of the owner's own files beside models. */
  readonly never = new Set<string>()
  readonly #byDigest = new Map<string, Known[]>()
  readonly #seedsRestricted: boolean

  constructor(seedsRestricted: boolean) {
    this.#seedsRestricted = seedsRestricted
  }

  learn(artifact: Known): void {
    this.artifacts.set(artifact.manifest, artifact)
    for (const digest of [artifact.manifest, ...artifact.files.map((file) => file.digest)])
      this.#has(artifact, digest.slice('sha256:'.length))
  }

  #has(artifact: Known, hex: string): void {
    const owners = this.#byDigest.get(hex) ?? []
    if (!owners.includes(artifact)) this.#byDigest.set(hex, [...owners, artifact])
  }

  /** An import brought companions beside an artifact. */
  laidBeside(artifact: Known, { tags, beside }: Beside): void {
    for (const tag of tags) artifact.tags.add(tag)
    for (const hex of beside) {
      artifact.beside.add(hex)
      if (!this.never.has(hex)) this.#has(artifact, hex)
    }
  }

  /** What the hub gave to this machine, all of it, while everybody might have it, is not a secret whatever came later. */
  mayHave(artifact: Known): May {
    const may = verdict(artifact)
    if (may !== 'no' || artifact.decision === 'private' || artifact.repo === undefined) return may
    const given = this.givenByHub.get(artifact.repo.number)
    return artifact.arrivals.length > 0 && [...artifact.tags].every((tag) => given?.has(tag)) ? 'either' : 'no'
  }

  /** Whether others may have all of these by artifacts other than `but`. */
  areGiven(victims: readonly Pick<Victim, 'tag' | 'sha256'>[], but: Known): boolean {
    const others = [...this.artifacts.values()].filter((each) => each !== but && this.inSwarm(each) !== 'no')
    const has = ({ manifest, tags }: Known, { tag, sha256 }: Pick<Victim, 'tag' | 'sha256'>): boolean =>
      tag === undefined ? manifest === `sha256:${sha256}` : tags.has(tag)
    return victims.every((victim) => others.some((each) => has(each, victim)))
  }

  /** What a stranger's pin only names may leave with it once everybody may have it by another artifact. */
  reconsider(): void {
    for (const artifact of this.artifacts.values())
      if (
        artifact.named !== undefined &&
        !artifact.arrivals.includes('either') &&
        this.areGiven(artifact.named, artifact)
      )
        artifact.arrivals.push('either')
  }

  /** Digests, in hex, that nobody may know of. */
  hidden(): string[] {
    return [...new Set([...this.#byDigest.keys(), ...this.never])].filter((hex) => this.isHidden(hex))
  }

  /** The artifacts that have a digest. */
  ownersOf(hex: string): readonly Known[] {
    return this.#byDigest.get(hex) ?? []
  }

  isGiven(artifact: Known): boolean {
    return this.mayHave(artifact) !== 'no'
  }

  /** Whether the owner can count on its being given: nothing else here has any of its bytes. */
  mustBeGiven(artifact: Known): boolean {
    const others = [...this.artifacts.values()].filter((each) => each !== artifact)
    return (
      this.mayHave(artifact) === 'yes' && !others.some(({ tags }) => [...tags].some((tag) => artifact.tags.has(tag)))
    )
  }

  /** For the swarm and its webseed, which the owner may open to what needed a credential. */
  inSwarm(artifact: Known): May {
    const may = this.mayHave(artifact)
    return may === 'no' && this.#seedsRestricted && artifact.decision !== 'private' ? 'either' : may
  }

  /** Another torrent than an artifact's own may be here where others may have an artifact that it belongs to. */
  ofTorrent(infohash: string): May {
    const all = [...this.artifacts.values()]
    // one commit has one document of companions, whichever artifact it lies beside
    const companions = all.flatMap(({ pins, beside }) => (pins.has(infohash) ? [...beside] : []))
    const isOf = ({ v1, pins, beside }: Known): boolean =>
      v1 === infohash || pins.has(infohash) || companions.some((hex) => beside.has(hex))
    return all.filter(isOf).every((each) => this.inSwarm(each) === 'no') ? 'no' : 'either'
  }

  /** Those of a name that others may have now. */
  ofName(name: string): Known[] {
    return [...(this.names.get(name)?.values() ?? [])]
      .map((manifest) => this.artifacts.get(manifest)!)
      .filter((each) => this.isGiven(each))
  }

  /** Those that may come under a name, and that others may have meanwhile. */
  awaitedUnder(name: string): Known[] {
    return [...this.artifacts.values()].filter((each) => each.awaits === name && this.isGiven(each))
  }

  ofRepo(number: number): Known[] {
    return [...this.artifacts.values()].filter(({ repo }) => repo?.number === number)
  }

  /**
   * Whether the owner keeps something of a repository that is asked for by a name: then this machine does not know it. `told`
   * are the names that the hub answered with when it was asked for that one; what was imported under an earlier one is
   * known by that.
   */
  isKeptFromHub(number: number, asked: string, told: ReadonlySet<string>): boolean {
    const kept = this.ofRepo(number).filter(({ decision, isOfHub }) => decision === 'private' && isOfHub)
    const names = new Set(kept.map(({ repo }) => repo!.name))
    return names.has(asked) || (told.size > 0 && [...told].every((name) => names.has(name)))
  }

  /** Tags that the hub's mirror may give out under the names of a repository. */
  tagsOfRepo(number: number, asked: string, told: ReadonlySet<string>): ReadonlySet<string> {
    const all = this.ofRepo(number)
    const tags = new Set(all.filter((each) => this.isGiven(each)).flatMap((each) => [...each.tags]))
    // what the owner keeps is not to be had in passing either
    if (!this.isKeptFromHub(number, asked, told)) for (const tag of this.givenByHub.get(number) ?? []) tags.add(tag)
    return tags
  }

  /** Whether a digest is one that only artifacts have that nobody may have. */
  isHidden(hex: string): boolean {
    const owners = this.#byDigest.get(hex)
    if (owners === undefined) return this.never.has(hex)
    return owners.every((artifact) => this.inSwarm(artifact) === 'no')
  }
}
