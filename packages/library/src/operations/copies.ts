import { timestampOf } from '@svc/internal-clock'
import type { ArtifactState, Library, ProvenCopy } from '@svc/internal-state'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'

/** A place's answer about an artifact's weights; `silent`: none. */
export interface CopyAnswer extends Pick<ProvenCopy, 'kind' | 'where'> {
  readonly is: 'there' | 'gone' | 'silent'
  /** For people; set unless the answer is `there`. */
  readonly why?: string
}

/** Asks the places that it knows of. */
export interface CopyWitness {
  /** @throws the signal's reason, and errors of the store */
  ask(manifest: Manifest, state: ArtifactState, signal: AbortSignal): Promise<readonly CopyAnswer[]>
}

export interface CopiesDeps extends Pick<Library, 'artifacts' | 'documents' | 'clock'> {
  /** The cheapest to ask first. */
  readonly witnesses: readonly CopyWitness[]
}

export interface CopyProof {
  /** Unix time at which a place was last seen to have all weights. */
  readonly provenMs: number | undefined
  /** Why other places do not count, for people. */
  readonly why: readonly string[]
}

/** Whether an artifact's weights could be fetched again, according to the records of its sources. */
export class Copies {
  readonly #deps: CopiesDeps

  constructor(deps: CopiesDeps) {
    this.#deps = deps
  }

  /** Asks until a place has it, and records the answers. A place that does not answer keeps its earlier proof. */
  async prove(manifestDigest: Sha256Digest, signal: AbortSignal): Promise<CopyProof> {
    const { artifacts, documents, clock, witnesses } = this.#deps
    const state = await artifacts.ifReadable(manifestDigest)
    if (state === undefined) return { provenMs: undefined, why: ['its origin is unknown'] }
    const manifest = await documents.manifest(manifestDigest)
    const why: string[] = []
    let { copies = [] } = state
    const asked: Pick<ProvenCopy, 'kind' | 'where'>[] = []
    let isThere = false
    for (const witness of manifest === undefined ? [] : witnesses) {
      for (const { kind, where, is, why: reason } of await witness.ask(manifest!, state, signal)) {
        asked.push({ kind, where })
        if (is !== 'there') why.push(`${where}: ${reason ?? is}`)
        if (is === 'silent') continue
        const at = is === 'there' ? timestampOf(clock) : undefined
        ;({ copies = [] } = await artifacts.setCopy(manifestDigest, { kind, where, at }))
        isThere ||= is === 'there'
      }
      if (isThere) return { provenMs: newestMs(copies), why }
    }
    // a source that is not asked cannot bring it back
    for (const { kind, where } of copies)
      if (!asked.some((each) => each.kind === kind && each.where === where))
        ({ copies = [] } = await artifacts.setCopy(manifestDigest, { kind, where, at: undefined }))
    if (why.length === 0) why.push('no source of it is known')
    return { provenMs: newestMs(copies), why }
  }
}

/** Undefined for none. */
export function newestMs(copies: readonly ProvenCopy[] = []): number | undefined {
  const times = copies.map(({ at }) => Date.parse(at)).filter((time) => !Number.isNaN(time))
  return times.length === 0 ? undefined : Math.max(...times)
}
