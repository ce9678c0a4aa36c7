import { isDigest, type Sha256Digest } from '@svc/ref'

/** A record below `state/` cannot be read. It is named in the error and left alone (spec disk.10, disk.19). */
export abstract class UnreadableStateError extends Error {
  /** Relative to the root, as in `state/repos/ns/name.json`. */
  readonly file: string
  /** What is the matter with it. */
  readonly what: string

  constructor(file: string, what: string, cause?: unknown) {
    super(`${file}: ${what}`, cause === undefined ? undefined : { cause })
    this.file = file
    this.what = what
  }
}

/** How to go on from a damaged record, by its folder. What is written over is kept below `state/damaged/`. */
const REMEDIES: readonly (readonly [folder: string, remedy: string])[] = [
  ['state/repos/', 'put a copy back, or remove the name with svc rm and import it again'],
  [
    'state/artifacts/',
    'the model is withheld meanwhile; put a copy back, or import it again: it is private then, until svc private --off'
  ],
  ['state/views/', 'put a copy back, or make or remove the view again']
]

/** The record is not what the daemon wrote. */
export class CorruptStateError extends UnreadableStateError {
  override readonly name = 'CorruptStateError'

  constructor(file: string, what: string, cause?: unknown) {
    const [, remedy] = REMEDIES.find(([folder]) => file.startsWith(folder)) ?? []
    super(file, remedy === undefined ? what : `${what}; ${remedy}`, cause)
  }
}

/** The record is sound, and of a format that only newer versions may read (spec disk.18). */
export class NewerStateError extends UnreadableStateError {
  override readonly name = 'NewerStateError'
}

export type Fields = Readonly<Record<string, unknown>>

export function fieldsOf(value: unknown, file: string, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new CorruptStateError(file, `${what} is not a JSON object`)
}

/** Refuses keys other than `known`. */
export function onlyKeys(fields: Fields, known: readonly string[], file: string): void {
  for (const key of Object.keys(fields)) {
    if (!known.includes(key)) throw new CorruptStateError(file, `unknown key ${JSON.stringify(key.slice(0, 80))}`)
  }
}

const FITS = {
  'a string': (value: unknown) => typeof value === 'string',
  'a boolean': (value: unknown) => typeof value === 'boolean',
  true: (value: unknown) => value === true
}

/** Checks fields that may be absent. @param prefix of their names in messages */
export function optionalFields(
  fields: Fields,
  keys: readonly string[],
  expected: keyof typeof FITS,
  file: string,
  prefix = ''
): void {
  for (const key of keys)
    if (fields[key] !== undefined && !FITS[expected](fields[key]))
      throw new CorruptStateError(file, `"${prefix}${key}" is not ${expected}`)
}

export function digestField(value: unknown, file: string, what: string): Sha256Digest {
  if (isDigest(value)) return value
  throw new CorruptStateError(file, `${what} is not a digest`)
}

export function stringsField(value: unknown, file: string, what: string): readonly string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
  throw new CorruptStateError(file, `${what} is not a list of strings`)
}

export type OnUnreadable = (error: UnreadableStateError) => void

/** What `read` gives, or undefined for a record that cannot be read, which `onUnreadable` hears of; without it, that is thrown. */
export async function readable<T>(
  read: () => Promise<T | undefined>,
  onUnreadable: OnUnreadable | undefined
): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof UnreadableStateError) || onUnreadable === undefined) throw error
    onUnreadable(error)
    return undefined
  }
}
