import type { OwnersChoice } from '@svc/classify'
import { LRUCache } from 'lru-cache'
import { type ArtifactState, choiceUnder, companionsUnder } from './artifact-record.ts'
import type { StoreState } from './state.ts'
import type { CheckContext, TrustRule, TrustRules } from './trust.ts'

export interface SignedModelsDeps extends Pick<StoreState, 'documents' | 'clock' | 'log'> {
  readonly store: CheckContext['store']
  readonly trust: TrustRules
}

const MAX_KNOWN = 10_000
/** Certificates expire. */
const KNOWN_MS = 3_600_000

/**
 * Applies rules with `require` to stored artifacts: a rule may be younger than their imports, or a backup brought them.
 * Every door that serves models by name calls this.
 */
export class SignedModels {
  readonly #deps: SignedModelsDeps
  readonly #known: LRUCache<string, Promise<string | undefined>>

  constructor(deps: SignedModelsDeps) {
    this.#deps = deps
    const perf = { now: () => deps.clock.monotonic() }
    this.#known = new LRUCache({ max: MAX_KNOWN, ttl: KNOWN_MS, ttlResolution: 0, perf })
  }

  /** The rule that requires a signature, here or at the source. @param name `ns/name` here, if it is known by one */
  async ruleFor(state: ArtifactState, name?: string): Promise<TrustRule | undefined> {
    const { manifestDigest, source } = state
    const { trust, documents } = this.#deps
    if (!trust.isStrict) return undefined
    const upstream = (await documents.manifest(manifestDigest))?.annotations['svc.hf.repo']
    const typed = name === undefined ? namesOf(state) : [name]
    const rule = trust.ruleFor({ typed, claimed: [source.repo, source.asked, upstream] })
    return rule?.mode === 'require' ? rule : undefined
  }

  /**
   * Why a rule refuses a complete artifact, or that this is unknown; undefined if no rule refuses it. For people.
   * @param from the name that its companions and its owner's choice are known by; default: `name`
   */
  async complaint(state: ArtifactState, name?: string, from = name): Promise<string | undefined> {
    const rule = await this.ruleFor(state, name)
    if (rule === undefined) return undefined
    const { manifestDigest: manifest } = state
    const companions = companionsUnder(state, from)
    const { choice } = choiceUnder(state, from)
    const key = `${manifest} ${companions} ${rule.label} ${JSON.stringify(choice)}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const asked = this.#check(rule, manifest, companions, choice).catch((error: unknown) => {
      this.#known.delete(key)
      return `its signature cannot be checked: ${(error as Error).message}`
    })
    this.#known.set(key, asked)
    const complaint = await asked
    if (complaint !== undefined) this.#deps.log.warn({ name, manifest, complaint }, 'mirrors do not show a model')
    return complaint
  }

  async #check(
    rule: TrustRule,
    digest: ArtifactState['manifestDigest'],
    companions: ArtifactState['manifestDigest'] | undefined,
    choice: OwnersChoice | undefined
  ): Promise<string | undefined> {
    const { documents, trust, store, clock } = this.#deps
    const manifest = (await documents.manifest(digest))!
    const { files, omitted } = (companions && (await documents.companions(companions))) ?? { files: [], omitted: [] }
    const beside = { files, omitted, choice }
    const complaint = await trust.complaintOfStored(rule, manifest, beside, { store, clock, forOthers: true })
    return complaint && `${rule.label}: ${complaint}`
  }
}

/** The names that imports gave an artifact. A client's request named one as its source does. */
function namesOf({ source, companions }: ArtifactState): string[] {
  const given = [...Object.keys(source.followed ?? {}), ...Object.keys(companions ?? {})].filter((name) => name !== '')
  const requested = source.asked ?? source.repo
  return given.length === 0 && source.onDemand === true && requested !== undefined ? [requested] : given
}
