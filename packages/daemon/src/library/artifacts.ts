import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { digestFromHex, digestHex, type Sha256Digest } from '@svc/ref'
import { usableHints } from './hints.ts'
import type { ArtifactSource, SwarmHints } from './origin.ts'
import type { ReplacedFiles } from './replace.ts'
import { CorruptStateError, digestField, fieldsOf, onlyKeys, parseStateText, stringsField } from './strict.ts'

/** What the daemon knows of one artifact beside its documents (spec disk.12, swarm.3). */
export interface ArtifactState {
  readonly manifestDigest: Sha256Digest
  /** The distribution record; absent for artifacts that came from a swarm by their pin. */
  readonly record?: Sha256Digest
  readonly source: ArtifactSource
  /** Not announced or served to the swarm unless the owner opts in. */
  readonly restricted: boolean
  readonly hints: SwarmHints
}

const KINDS = ['local', 'hf', 'catalog', 'bt']
const HEX_FILE = /^[0-9a-f]{64}\.json$/

/** `state/artifacts/<hex of the manifest digest>.json`. */
export class Artifacts {
  readonly #root: string
  readonly #files: ReplacedFiles
  #turn: Promise<unknown> = Promise.resolve()

  constructor(root: string, files: ReplacedFiles) {
    this.#root = join(root, 'state', 'artifacts')
    this.#files = files
  }

  /** @returns undefined where the artifact is unknown. @throws CorruptStateError */
  async read(manifestDigest: Sha256Digest): Promise<ArtifactState | undefined> {
    const name = `${digestHex(manifestDigest)}.json`
    let bytes: Uint8Array
    try {
      bytes = await readFile(join(this.#root, name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    return parseArtifactState(bytes, manifestDigest, `state/artifacts/${name}`)
  }

  /**
   * Records an artifact. Hints of earlier imports are kept beside the new ones (each list at most 100, new ones first), and so
   * is what a foreign swarm needs. A pinned import says nothing of where the model came from: it never overrules an import
   * that did, least of all that access was needed. Everything else is what the latest import says.
   */
  record(state: ArtifactState): Promise<void> {
    // one at a time: two imports that end in the same artifact must not lose each other's hints
    const turn = this.#turn.then(() => this.#record(state))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #record(state: ArtifactState): Promise<void> {
    const before = await this.read(state.manifestDigest)
    const hints = before === undefined ? state.hints : mergeHints(state.hints, before.hints)
    const record = state.record ?? before?.record
    const origin = state.source.kind === 'bt' && before !== undefined ? before : state
    const foreign = origin.source.foreign ?? before?.source.foreign
    const next: ArtifactState = {
      ...state,
      source: { ...origin.source, ...(foreign !== undefined && { foreign }) },
      restricted: origin.restricted,
      hints,
      ...(record !== undefined && { record })
    }
    const text = formatArtifactState(next)
    if (before !== undefined && formatArtifactState(before) === text) return
    await this.#files.write(join(this.#root, `${digestHex(state.manifestDigest)}.json`), text)
  }

  /** Every known artifact, sorted by digest. Corrupt files are handed to `onCorrupt`, or thrown without it. */
  async *list(onCorrupt?: (error: CorruptStateError) => void): AsyncGenerator<ArtifactState> {
    let names: string[]
    try {
      names = await readdir(this.#root)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    for (const name of names.filter((each) => HEX_FILE.test(each)).sort()) {
      let state: ArtifactState | undefined
      try {
        state = await this.read(digestFromHex(name.slice(0, 64)))
      } catch (error) {
        if (!(error instanceof CorruptStateError) || onCorrupt === undefined) throw error
        onCorrupt(error)
      }
      if (state !== undefined) yield state
    }
  }
}

/** @throws CorruptStateError */
export function parseArtifactState(bytes: Uint8Array, manifestDigest: Sha256Digest, file: string): ArtifactState {
  const fields = parseStateText(bytes, file)
  onlyKeys(fields, ['record', 'source', 'restricted', 'hints'], file)
  const source = fieldsOf(fields.source, file, '"source"')
  onlyKeys(source, ['kind', 'repo', 'revision', 'foreign'], file)
  if (!KINDS.includes(source.kind as string)) throw new CorruptStateError(file, '"source.kind" is unknown')
  for (const key of ['repo', 'revision']) {
    if (source[key] !== undefined && typeof source[key] !== 'string') {
      throw new CorruptStateError(file, `"source.${key}" is not a string`)
    }
  }
  if (source.foreign !== undefined) fieldsOf(source.foreign, file, '"source.foreign"')
  if (typeof fields.restricted !== 'boolean') throw new CorruptStateError(file, '"restricted" is not a boolean')
  const hints = fieldsOf(fields.hints, file, '"hints"')
  onlyKeys(hints, ['trackers', 'webseeds', 'peers'], file)
  return {
    manifestDigest,
    ...(fields.record !== undefined && { record: digestField(fields.record, file, '"record"') }),
    source: source as unknown as ArtifactSource,
    restricted: fields.restricted,
    hints: usableHints({
      trackers: stringsField(hints.trackers, file, '"hints.trackers"'),
      webseeds: stringsField(hints.webseeds, file, '"hints.webseeds"'),
      peers: stringsField(hints.peers, file, '"hints.peers"')
    })
  }
}

const formatArtifactState = ({ record, source, restricted, hints }: ArtifactState): string =>
  `${JSON.stringify({ record, source, restricted, hints }, null, 2)}\n`

const MAX_HINTS = 100
const merged = (first: readonly string[], second: readonly string[]): readonly string[] =>
  [...new Set([...first, ...second])].slice(0, MAX_HINTS)

const mergeHints = (a: SwarmHints, b: SwarmHints): SwarmHints => ({
  trackers: merged(a.trackers, b.trackers),
  webseeds: merged(a.webseeds, b.webseeds),
  peers: merged(a.peers, b.peers)
})
