import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { ClientError, type Job } from '@svc/client'
import type { FoundFile } from '@svc/view'
import { CliError } from '../errors.ts'
import { follow } from '../follow.ts'
import { canAsk } from '../questions/question.ts'
import { requireConsent, takenRefs, tellReplaced } from '../questions/replacing.ts'
import type { Session } from '../session.ts'
import { type AdoptFlags, adoptBody } from './body.ts'
import type { AdoptableModel } from './found-models.ts'

/** An imported quant. */
export interface TakenMember {
  /** `ns/name:quant` */
  readonly ref: string
  /** Digest of the manifest that it had right after the import. */
  readonly manifest: string
}

export interface TakeOverOptions extends AdoptFlags {
  /** Names may be taken from models that were here before. */
  readonly replace?: boolean
  readonly yes?: boolean
}

export interface AdoptOutcome {
  readonly model: AdoptableModel
  /** The imported members. */
  readonly members: readonly TakenMember[]
  /** Files whose bytes do not match the cache's digest; they were left out. */
  readonly damaged: readonly FoundFile[]
  /** The files' metadata from before the import, by path. */
  readonly before: ReadonlyMap<string, Stats>
  /** What the import said. */
  readonly warnings?: readonly string[]
  readonly error?: CliError
}

interface AdoptAttempt extends AdoptOutcome {
  /** References of other models, which it may not replace. */
  readonly taken?: readonly string[]
}

/** Imports models of other tools. Models that were here before keep their names unless the user says otherwise. */
export class TakeOver {
  readonly #session: Session
  readonly #options: TakeOverOptions
  /** References that models of this run have. */
  readonly #made = new Set<string>()

  constructor(session: Session, options: TakeOverOptions) {
    this.#session = session
    this.#options = options
  }

  /** @throws CliError on Ctrl-C, ClientError when the daemon is unreachable */
  async run(model: AdoptableModel): Promise<AdoptOutcome> {
    const before = new Map<string, Stats>()
    for (const { path } of model.found.files) {
      const stats = await lstat(path).catch(() => undefined)
      if (stats !== undefined) before.set(path, stats)
    }
    let outcome = await this.#attempt(model, before)
    const taken = outcome.taken ?? []
    // two models of this run can share a name if only damaged files, which are left out, make them different
    const isOfThisRun = taken.some((ref) => this.#made.has(ref))
    if (taken.length > 0 && !isOfThisRun && (await this.#mayReplace(taken, model.as)))
      outcome = await this.#attempt(model, before, true)
    for (const { ref } of outcome.members) this.#made.add(ref)
    return outcome
  }

  async #mayReplace(taken: readonly string[], as: string): Promise<boolean> {
    const { replace, yes } = this.#options
    if (replace === true) return true
    if (yes === true || !canAsk(this.#session)) return false
    return requireConsent(this.#session, taken, as).then(
      () => true,
      (error: unknown) => {
        if (error instanceof CliError && error.code === 'E_NAME_TAKEN') return false
        throw error
      }
    )
  }

  /** One import. Damaged files are left out one by one, as long as a model remains. */
  async #attempt(model: AdoptableModel, before: AdoptOutcome['before'], replace = false): Promise<AdoptAttempt> {
    const session = this.#session
    const { as } = model
    const damaged: FoundFile[] = []
    // with --json the whole result is one document
    const quiet = session.json ? { ...session, json: false, quiet: true } : session
    for (;;) {
      const files = model.found.files.filter((file) => !damaged.includes(file))
      const failed = { model, members: [], damaged, before }
      try {
        const body = { ...adoptBody(model.found, as, files, this.#options), ...(!replace && { replace: false }) }
        const job = await follow(quiet, await session.client.adopt(body))
        tellReplaced(session, job)
        return { model, members: membersOf(as, job), damaged, before, warnings: job.result?.warnings ?? [] }
      } catch (thrown) {
        const error = failureOf(thrown)
        if (error === undefined) throw thrown
        const taken = takenRefs(error)
        if (taken?.every((ref) => ref.startsWith(`${as}:`))) return { ...failed, error, taken }
        const [name, ...others] = error.candidates
        const file = others.length === 0 ? files.find((each) => each.name === name) : undefined
        if (file === undefined) return { ...failed, error }
        damaged.push(file)
        if (files.length === 1) return failed
      }
    }
  }
}

/** What ends only this model: its files may have gone with their disk. */
function failureOf(error: unknown): CliError | undefined {
  if (error instanceof CliError) return error.exit === 'interrupted' ? undefined : error
  if (!(error instanceof ClientError)) return undefined
  // a file that is not what its cache lists may show before there is a job
  if (error.status !== 400 && error.code !== 'E_NOT_IMPORTABLE') return undefined
  return new CliError('failed', error.message, { code: error.code, candidates: error.candidates, cause: error })
}

const membersOf = (as: string, { result }: Job): TakenMember[] =>
  (result?.quants ?? []).map((quant, i) => ({ ref: `${as}:${quant}`, manifest: result!.manifests[i]! }))
