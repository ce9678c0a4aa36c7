import { isObject } from '@svc/internal-http/json'
import { isDigest } from '@svc/ref'

/** A record below `state/` that cannot be read; what it names is left out. */
export interface DamagedFile {
  /** Relative to the root, as in `state/repos/ns/name.json`. */
  readonly file: string
  /** What is wrong with it, and what to do, for people. */
  readonly what: string
}

/** A record below `state/` cannot be read. It is named in the error and left alone (spec disk.10, disk.19). */
export abstract class UnreadableStateError extends Error implements DamagedFile {
  readonly file: string
  readonly what: string

  constructor(file: string, what: string, cause?: unknown) {
    super(`${file}: ${what}`, cause === undefined ? undefined : { cause })
    this.file = file
    this.what = what
  }
}

/** How to repair a damaged record, by its folder. A record that is written over is kept below `state/damaged/`. */
const REMEDIES: readonly (readonly [folder: string, remedy: string])[] = [
  ['state/repos/', 'put a copy back, or remove the name and import it again'],
  [
    'state/artifacts/',
    'the model is withheld meanwhile; put a copy back, or import it again: it is private then, until its owner shares it'
  ],
  ['state/views/', 'put a copy back, or make or remove the view again']
]

/** The record differs from anything the daemon writes. */
export class CorruptStateError extends UnreadableStateError {
  override readonly name = 'CorruptStateError'

  constructor(file: string, what: string, cause?: unknown) {
    const [, remedy] = REMEDIES.find(([folder]) => file.startsWith(folder)) ?? []
    super(file, remedy === undefined ? what : `${what}; ${remedy}`, cause)
  }
}

/** The record is sound, and of a format that this version does not read (spec disk.18). */
export class ForeignStateError extends UnreadableStateError {
  override readonly name = 'ForeignStateError'
}

/** The problem of a value called `what`, for people; undefined for a valid one. */
export type FieldRule = (value: unknown, what: string) => string | undefined

/** A rule for each key of an object. */
export type Shape<T> = { readonly [Key in keyof Required<T>]: FieldRule }

const ruleOf =
  (expected: string, isGood: (value: unknown) => boolean): FieldRule =>
  (value, what) =>
    isGood(value) ? undefined : `${what} is not ${expected}`

export const text = ruleOf('a string', (value) => typeof value === 'string')
export const bool = ruleOf('a boolean', (value) => typeof value === 'boolean')
/** True if the key is present. */
export const yes = ruleOf('true', (value) => value === undefined || value === true)
export const digest = ruleOf('a digest', isDigest)
export const anything: FieldRule = () => undefined

export const oneOf = (...words: readonly string[]): FieldRule =>
  ruleOf(`one of ${words.join(', ')}`, (value) => words.includes(value as string))

export const optional =
  (rule: FieldRule): FieldRule =>
  (value, what) =>
    value === undefined ? undefined : rule(value, what)

function firstOf<T>(items: Iterable<T>, problem: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = problem(item)
    if (found !== undefined) return found
  }
  return undefined
}

export const listOf =
  (rule: FieldRule): FieldRule =>
  (value, what) =>
    Array.isArray(value) ? firstOf(value, (item) => rule(item, `an entry of ${what}`)) : `${what} is not a list`

/** An object with any keys. */
export const mapOf =
  (rule: FieldRule): FieldRule =>
  (value, what) =>
    isObject(value)
      ? firstOf(Object.entries(value), ([key, item]) => rule(item, `"${key.slice(0, 80)}" of ${what}`))
      : `${what} is not a JSON object`

/** An object with these keys; others are let through, since newer versions may have added them. */
export const objectOf =
  <T>(shape: Shape<T>): FieldRule =>
  (value, what) =>
    isObject(value)
      ? firstOf(Object.entries<FieldRule>(shape), ([key, rule]) => rule(value[key], `"${key}" of ${what}`))
      : `${what} is not a JSON object`

/** An object with these keys and no others. */
export const exactly =
  <T>(shape: Shape<T>): FieldRule =>
  (value, what) =>
    objectOf(shape)(value, what) ??
    firstOf(Object.keys(value as object), (key) =>
      Object.hasOwn(shape, key) ? undefined : `${what} has the unknown key ${JSON.stringify(key.slice(0, 80))}`
    )

export type OnUnreadable = (error: UnreadableStateError) => void

/** The result of `read`. A record that cannot be read is passed to `onUnreadable`, or else thrown. */
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
