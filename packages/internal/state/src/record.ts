import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { crc32 } from 'node:zlib'
import { type Clock, systemClock, timestampOf } from '@svc/internal-clock'
import { listFolder } from '@svc/internal-files'
import { isObject } from '@svc/internal-http/json'
import { digestFromHex, digestHex, type Sha256Digest } from '@svc/ref'
import { MAX_STATE_BYTES, type ReplacedFiles } from './replace.ts'
import { CorruptStateError, ForeignStateError, objectOf, type Shape } from './strict.ts'

/** The format of all records. Raise it when older versions must not ignore what new records may hold. */
const FORMAT = 4

/** One kind of records below `state/`. */
export interface RecordKind<State, Recorded = State> {
  /** Below `state/`. */
  readonly folder: string
  readonly shape: Shape<Recorded>
  /** @throws CorruptStateError */
  readonly decode: (recorded: Recorded, file: string) => State
  readonly encode: (state: State) => Recorded
}

/** Of a record, unchecked. */
export type Fields = Readonly<Record<string, unknown>>

const HEX_FILE = /^[0-9a-f]{64}\.json$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lastLine = (checksum: number): string => `  "checksum": "crc32:${checksum.toString(16).padStart(8, '0')}"\n}\n`
const LAST_LINE_BYTES = lastLine(0).length
const ENVELOPE = ['version', 'readers', 'checksum']

/**
 * A record is a JSON object with `version`, `readers` and `checksum` beside its own keys (spec disk.18). The
 * checksum, the CRC-32 of all bytes before its line, is the last: so no byte can change unnoticed.
 * @throws CorruptStateError, ForeignStateError
 */
export const parseStateRecord = <State, Recorded>(
  bytes: Uint8Array,
  file: string,
  kind: RecordKind<State, Recorded>
): State => stateIn(fieldsIn(bytes, file), file, kind)

function isSealed(bytes: Uint8Array): boolean {
  const covered = bytes.subarray(0, Math.max(0, bytes.length - LAST_LINE_BYTES))
  return Buffer.compare(bytes.subarray(covered.length), Buffer.from(lastLine(crc32(covered)))) === 0
}

/** A record of any format with other fields. The same bytes where nothing changes, and for what is no sound record. */
export function amendedRecord(bytes: Uint8Array, change: (fields: Fields) => Fields): Uint8Array {
  const before = fieldsOf(bytes)
  if (before === undefined) return bytes
  const after = change(before)
  return isDeepStrictEqual(after, before) ? bytes : Buffer.from(sealed(after))
}

/** The fields of a record of any format, unchecked; undefined for what is no sound record. */
export function fieldsOf(bytes: Uint8Array): Fields | undefined {
  if (!isSealed(bytes)) return undefined
  let fields: unknown
  try {
    fields = JSON.parse(utf8.decode(bytes))
  } catch {
    return undefined
  }
  if (!isObject(fields)) return undefined
  const { checksum: _, ...rest } = fields
  return rest
}

function sealed(fields: Fields): string {
  const text = JSON.stringify(fields, null, 2)
  const covered = `${text.slice(0, -'\n}'.length)},\n`
  return covered + lastLine(crc32(covered))
}

function fieldsIn(bytes: Uint8Array, file: string): Fields {
  if (!isSealed(bytes)) throw new CorruptStateError(file, 'its checksum does not match')
  let fields: Fields
  try {
    fields = JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw new CorruptStateError(file, 'not UTF-8 JSON', cause)
  }
  const { version, readers } = fields
  if (!isFormat(version) || !isFormat(readers))
    throw new CorruptStateError(file, '"version" or "readers" is not a number')
  if (version >= FORMAT && readers <= FORMAT) return fields
  const formats = `format ${version}, for readers of format ${readers}; this one reads format ${FORMAT}`
  throw new ForeignStateError(file, `written by another version (${formats})`)
}

const isFormat = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0

function stateIn<State, Recorded>(fields: Fields, file: string, kind: RecordKind<State, Recorded>): State {
  const problem = objectOf(kind.shape)(fields, 'the record')
  if (problem !== undefined) throw new CorruptStateError(file, problem)
  const known = Object.keys(kind.shape).filter((key) => fields[key] !== undefined)
  return kind.decode(Object.fromEntries(known.map((key) => [key, fields[key]])) as Recorded, file)
}

function formatRecord<State, Recorded>(state: State, { shape, encode }: RecordKind<State, Recorded>, more: Fields) {
  const recorded = encode(state)
  const known = Object.fromEntries(Object.keys(shape).map((key) => [key, recorded[key as keyof Recorded]]))
  return sealed({ ...more, ...known, version: FORMAT, readers: FORMAT })
}

/** The name of the record for a digest. */
export const recordName = (digest: Sha256Digest): string => `${digestHex(digest)}.json`

/**
 * The records of one kind. Those that cannot be read stay as they are until their owner writes or removes them: then a
 * damaged one is kept below `state/damaged/`, and one of another format is refused (spec disk.19).
 */
export class StateRecords<State, Recorded = State> {
  readonly #state: string
  readonly #files: ReplacedFiles
  readonly #kind: RecordKind<State, Recorded>
  readonly #clock: Clock

  /** `root` is the folder of the store; `files` has opened `<root>/state`. */
  constructor(root: string, files: ReplacedFiles, kind: RecordKind<State, Recorded>, clock = systemClock) {
    this.#clock = clock
    this.#state = join(root, 'state')
    this.#files = files
    this.#kind = kind
  }

  /** @param name below the folder of the kind. @throws UnreadableStateError, the system's error */
  async read(name: string): Promise<State | undefined> {
    const bytes = await this.#bytes(name)
    return bytes && parseStateRecord(bytes, this.#fileOf(name), this.#kind)
  }

  /** The digests that records are named by, see {@link recordName}, sorted. @throws the system's error, as `list` does */
  async digests(list = listFolder): Promise<Sha256Digest[]> {
    const found = await list(join(this.#state, this.#kind.folder))
    const names = found.map(({ name }) => name).filter((name) => HEX_FILE.test(name))
    return names.sort().map((name) => digestFromHex(name.slice(0, 64)))
  }

  /** Replaces a record; keys that only newer versions know stay. @throws ForeignStateError, the system's error */
  async write(name: string, state: State): Promise<void> {
    const unknown = await this.#unknownIn(name)
    await this.#files.write(this.#pathOf(name), formatRecord(state, this.#kind, unknown))
  }

  confirm(name: string): Promise<void> {
    return this.#files.confirm(this.#pathOf(name))
  }

  /** Removes a record if it exists, durably. @throws ForeignStateError, the system's error */
  async remove(name: string): Promise<void> {
    await this.#unknownIn(name)
    await this.#files.remove(this.#pathOf(name))
  }

  async #bytes(name: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#files.read(this.#pathOf(name))
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause
      throw new CorruptStateError(this.#fileOf(name), `larger than ${MAX_STATE_BYTES} bytes`, cause)
    }
  }

  /** The keys of a record that this version does not know, before it is written over or removed. */
  async #unknownIn(name: string): Promise<Fields> {
    const bytes = await this.#bytes(name)
    if (bytes === undefined) return {}
    const file = this.#fileOf(name)
    try {
      const fields = fieldsIn(bytes, file)
      stateIn(fields, file, this.#kind)
      const isKnown = (key: string): boolean => Object.hasOwn(this.#kind.shape, key) || ENVELOPE.includes(key)
      return Object.fromEntries(Object.entries(fields).filter(([key]) => !isKnown(key)))
    } catch (error) {
      if (!(error instanceof CorruptStateError)) throw error
      // copied rather than moved: without its record, the model would be unknown for a moment
      const at = timestampOf(this.#clock).replaceAll(':', '')
      await this.#files.write(join(this.#state, 'damaged', this.#kind.folder, `${name}.${at}`), bytes)
      return {}
    }
  }

  #fileOf(name: string): string {
    return `state/${this.#kind.folder}/${name}`
  }

  #pathOf(name: string): string {
    return join(this.#state, this.#kind.folder, name)
  }
}
