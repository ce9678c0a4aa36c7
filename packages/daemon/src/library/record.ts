import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Clock, systemClock, timestampOf } from '@svc/internal-clock'
import { type FileStat, listFolder } from '@svc/internal-files'
import { MAX_STATE_BYTES, type ReplacedFiles } from './replace.ts'
import { CorruptStateError, type Fields, fieldsOf, NewerStateError, onlyKeys, UnreadableStateError } from './strict.ts'

/**
 * The format that this version writes. Raise it whenever records may hold something new, and `readers` of the kind as well if an
 * older version must not ignore it. 1 had no envelope.
 */
const RECORD_VERSION = 4

/** One kind of records below `state/`. */
export interface RecordKind<State> {
  /** Below `state/`. */
  readonly folder: string
  /** Those of the first format, which knew no others. */
  readonly keys: readonly string[]
  /** The oldest version that may read what this one writes, ignoring keys that it does not know; perhaps of each record. */
  readonly readers: number | ((state: State) => number)
  /** @throws CorruptStateError */
  parse(fields: Fields, file: string): State
  format(state: State): Fields
}

/** A record that is named by a digest, or by another SHA-256. */
export const HEX_FILE = /^[0-9a-f]{64}\.json$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lastLine = (checksum: number): string => `  "checksum": "crc32:${checksum.toString(16).padStart(8, '0')}"\n}\n`
const LAST_LINE_BYTES = lastLine(0).length

/**
 * Parses a record: a JSON object with `version`, `readers` and `checksum` beside its own keys (spec disk.18). The
 * checksum is the CRC-32 of all bytes before the line that has it, which is the last: neither the order of keys nor their
 * spelling matters, and no byte can change unnoticed.
 * @throws CorruptStateError, NewerStateError
 */
export function parseStateRecord<State>(bytes: Uint8Array, file: string, kind: RecordKind<State>): State {
  return kind.parse(fieldsIn(bytes, file, kind), file)
}

function fieldsIn(bytes: Uint8Array, file: string, { keys }: Pick<RecordKind<unknown>, 'keys'>): Fields {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw new CorruptStateError(file, 'not UTF-8 JSON', cause)
  }
  const fields = fieldsOf(value, file, 'the file')
  const { version, readers, checksum } = fields
  if (version === undefined && readers === undefined && checksum === undefined) onlyKeys(fields, keys, file)
  else checkEnvelope(bytes, fields, file)
  return fields
}

/** Whether a parsed record has no envelope: then it has no unknown keys either, wherever. */
export const isFirstFormat = (fields: Fields): boolean => fields.version === undefined

function checkEnvelope(bytes: Uint8Array, { version, readers }: Fields, file: string): void {
  const covered = bytes.subarray(0, Math.max(0, bytes.length - LAST_LINE_BYTES))
  if (Buffer.compare(bytes.subarray(covered.length), Buffer.from(lastLine(crc32(covered)))) !== 0)
    throw new CorruptStateError(file, 'its checksum does not match')
  if (!isVersion(version) || !isVersion(readers))
    throw new CorruptStateError(file, '"version" or "readers" is not a number')
  if (readers > RECORD_VERSION)
    throw new NewerStateError(
      file,
      `written by a newer version of svcd (format ${version}, for readers of ${readers}; this one reads up to ${RECORD_VERSION})`
    )
}

const isVersion = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0

/** What a record keeps when an older version writes it again. */
interface PreservedFields {
  readonly unknown: Fields
  readonly readers: number
}

function formatRecord<State>(state: State, kind: RecordKind<State>, kept?: PreservedFields): string {
  const own = typeof kind.readers === 'number' ? kind.readers : kind.readers(state)
  const readers = Math.max(own, kept?.readers ?? 0)
  const text = JSON.stringify({ ...kept?.unknown, ...kind.format(state), version: RECORD_VERSION, readers }, null, 2)
  const covered = `${text.slice(0, -'\n}'.length)},\n`
  return covered + lastLine(crc32(covered))
}

/**
 * The records of one kind. Those that cannot be read stay as they are until their owner writes or removes them: then a
 * damaged one is kept below `state/damaged/`, and a newer one is refused (spec disk.19).
 */
export class StateRecords<State> {
  readonly #state: string
  readonly #files: ReplacedFiles
  readonly #kind: RecordKind<State>
  readonly #known: ReadonlySet<string>
  readonly #clock: Clock

  /** `root` is the folder of the store; `files` has opened `<root>/state`. */
  constructor(root: string, files: ReplacedFiles, kind: RecordKind<State>, clock = systemClock) {
    this.#clock = clock
    this.#state = join(root, 'state')
    this.#files = files
    this.#kind = kind
    this.#known = new Set([...kind.keys, 'version', 'readers', 'checksum'])
  }

  /** @param name below the folder of the kind. @throws CorruptStateError, NewerStateError, the system's error */
  async read(name: string): Promise<State | undefined> {
    const bytes = await this.#bytes(name)
    return bytes && parseStateRecord(bytes, this.#fileOf(name), this.#kind)
  }

  /** The names of those with a {@link HEX_FILE | SHA-256} for a name, sorted. @throws the system's error, as `list` does */
  async hexNames(list = listFolder): Promise<string[]> {
    const found = await list(join(this.#state, this.#kind.folder))
    return found
      .map(({ name }) => name)
      .filter((name) => HEX_FILE.test(name))
      .sort()
  }

  /** {@link read} at once; undefined where `read` has to be asked, which also says what is wrong. */
  now(name: string, path: string): { readonly state: State; readonly stat: FileStat } | undefined {
    const file = this.#files.readNow(path)
    if (file === undefined) return undefined
    try {
      return { state: parseStateRecord(file.bytes, this.#fileOf(name), this.#kind), stat: file.stat }
    } catch (error) {
      if (error instanceof UnreadableStateError) return undefined
      throw error
    }
  }

  /** Replaces a record; keys that only newer versions know stay. @throws NewerStateError, the system's error */
  async write(name: string, state: State): Promise<void> {
    const kept = await this.#kept(name)
    await this.#files.write(this.#pathOf(name), formatRecord(state, this.#kind, kept))
  }

  confirm(name: string): Promise<void> {
    return this.#files.confirm(this.#pathOf(name))
  }

  /** Removes a record if it exists, durably. @throws NewerStateError, the system's error */
  async remove(name: string): Promise<void> {
    await this.#kept(name)
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

  async #kept(name: string): Promise<PreservedFields | undefined> {
    const bytes = await this.#bytes(name)
    if (bytes === undefined) return undefined
    const file = this.#fileOf(name)
    try {
      const fields = fieldsIn(bytes, file, this.#kind)
      this.#kind.parse(fields, file)
      if (isFirstFormat(fields)) return undefined
      const unknown = Object.fromEntries(Object.entries(fields).filter(([key]) => !this.#known.has(key)))
      return { unknown, readers: fields.readers as number }
    } catch (error) {
      if (!(error instanceof CorruptStateError)) throw error
      // copied rather than moved: a model whose record is gone for a moment would be one that nobody knows
      const at = timestampOf(this.#clock).replaceAll(':', '')
      await this.#files.write(join(this.#state, 'damaged', this.#kind.folder, `${name}.${at}`), bytes)
      return undefined
    }
  }

  #fileOf(name: string): string {
    return `state/${this.#kind.folder}/${name}`
  }

  #pathOf(name: string): string {
    return join(this.#state, this.#kind.folder, name)
  }
}
