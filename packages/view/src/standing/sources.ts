import { accessSync, constants, lstatSync } from 'node:fs'
import { errnoOf } from '@svc/internal-errors'
import { ViewError } from '../errors.ts'
import type { ShownFile, StandingModel } from './model.ts'
import type { BadSource } from './own-entries.ts'

/** Ends an attempt: the next one does without this file, or without copies of its models. */
export class SourceError extends Error {
  readonly path: string

  constructor(path: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.path = path
  }
}

/** The files of the store that cannot be read, each until it changes. */
export class Sources {
  readonly #known: Readonly<Record<string, BadSource>>
  readonly #found = new Map<string, BadSource>()
  readonly #models = new Set<string>()
  #reason = ''

  /** @param known from earlier */
  constructor(known: Readonly<Record<string, BadSource>> = {}) {
    this.#known = known
  }

  /** What was found in this attempt. */
  get bad(): Readonly<Record<string, BadSource>> | undefined {
    return this.#found.size === 0 ? undefined : Object.fromEntries(this.#found)
  }

  /** The models that are not shown whole, as a sentence; undefined if none is. */
  get failed(): string | undefined {
    const [first, ...others] = this.#models
    if (first === undefined) return undefined
    const more = others.length === 0 ? '' : ` and ${others.length} more`
    return `not all of ${first}${more} is shown: ${this.#reason}`
  }

  /** @returns whether a file of a model could be read, or has changed since. Only what failed before is looked at. */
  admitsAgain(model: StandingModel, file: ShownFile): boolean {
    return this.#known[file.path] === undefined || this.admits(model, [file])
  }

  /** @returns whether all of these files of a model can be copied, as far as is known */
  admits({ ns, name, quant }: StandingModel, files: readonly ShownFile[]): boolean {
    const bad = files.flatMap(({ path }) => this.#badAt(path) ?? [])[0]
    if (bad !== undefined) this.refuse({ ns, name, quant }, bad.reason)
    return bad === undefined
  }

  refuse({ ns, name, quant }: Pick<StandingModel, 'ns' | 'name' | 'quant'>, reason: string): void {
    this.#models.add(`${ns}/${name}:${quant}`)
    this.#reason ||= reason
  }

  /** @returns for the next attempt, what is known with this failure */
  with({ path, message }: SourceError): Readonly<Record<string, BadSource>> {
    return { ...this.bad, [path]: { stamp: stampOf(path), reason: message } }
  }

  #badAt(path: string): BadSource | undefined {
    const stamp = stampOf(path)
    const known = this.#known[path]
    const bad = stamp === GONE ? { stamp, reason: `${path} cannot be read` } : known
    if (bad?.stamp !== stamp) return undefined
    this.#found.set(path, bad)
    return bad
  }
}

const GONE = ''

/** Changes with a file; {@link GONE} for what cannot be opened. */
function stampOf(path: string): string {
  try {
    accessSync(path, constants.R_OK)
    const { ino, size, mtimeMs, ctimeMs } = lstatSync(path)
    return [ino, size, mtimeMs, ctimeMs].join(' ')
  } catch {
    return GONE
  }
}

/** Whether it is the source that a copy failed for, and not the place of the copy. */
export const isOfSource = (error: unknown, { path }: ShownFile): boolean =>
  (error instanceof ViewError && error.code === 'E_CORRUPT_BLOB') ||
  (errnoOf(error) === 'EIO' && (error as NodeJS.ErrnoException).syscall === 'read') ||
  stampOf(path) === GONE
