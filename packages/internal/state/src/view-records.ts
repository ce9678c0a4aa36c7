import { hash } from 'node:crypto'
import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import type { ViewLayout, ViewMode } from '@svc/view'
import { type RecordKind, recordName, StateRecords } from './record.ts'
import type { ReplacedFiles } from './replace.ts'
import { CorruptStateError, digest, listOf, type OnUnreadable, oneOf, optional, readable, text } from './strict.ts'

/** A view at a place chosen by a user. */
export interface ViewRecord {
  /** Absolute, with links in its parent folders resolved. */
  readonly path: string
  readonly manifest: Sha256Digest
  /** In a hub cache: the artifacts of the other models in it. */
  readonly others: readonly Sha256Digest[]
  /** The documents of the companions that lie in it; absent in older records, and while there are none. */
  readonly companions?: readonly Sha256Digest[]
  readonly layout: ViewLayout
  readonly mode: ViewMode
  /** That of the parent folder: if it differs, the disk with the view is not mounted. */
  readonly device: string
}

/**
 * The canonical path of a place: links in its parent folders are resolved. If these do not exist, the path as written.
 */
export async function placeOf(path: string): Promise<string> {
  const target = resolve(path)
  try {
    return join(await realpath(dirname(target)), basename(target))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return target
    throw error
  }
}

/** Identifies the disk of a folder; undefined if the folder does not exist. */
export async function deviceOf(folder: string): Promise<string | undefined> {
  try {
    return String((await stat(folder, { bigint: true })).dev)
  } catch {
    return undefined
  }
}

/**
 * `state/views/<SHA-256 of the path>.json`: the places of views, so that their artifacts are kept. The record is
 * durable before the view is made. Managed views below `<root>/views` need none.
 */
export class ViewRecords {
  readonly #records: StateRecords<ViewRecord>

  /** `root` is the folder of the store; `files` has opened `<root>/state`. */
  constructor(root: string, files: ReplacedFiles) {
    this.#records = new StateRecords(root, files, VIEW_RECORD)
  }

  /** @throws UnreadableStateError */
  read(path: string): Promise<ViewRecord | undefined> {
    return this.#records.read(nameOf(path))
  }

  /** {@link read} before a write or removal, which sets a damaged one aside. @throws ForeignStateError */
  async find(path: string): Promise<{ readonly record: ViewRecord | undefined; readonly isDamaged: boolean }> {
    try {
      return { record: await this.read(path), isDamaged: false }
    } catch (error) {
      if (!(error instanceof CorruptStateError)) throw error
      return { record: undefined, isDamaged: true }
    }
  }

  write(record: ViewRecord): Promise<void> {
    return this.#records.write(nameOf(record.path), record)
  }

  remove(path: string): Promise<void> {
    return this.#records.remove(nameOf(path))
  }

  /** Those that cannot be read are passed to `onUnreadable`, or else thrown. */
  async *list(onUnreadable?: OnUnreadable): AsyncGenerator<ViewRecord> {
    for (const each of await this.#records.digests()) {
      const record = await readable(() => this.#records.read(recordName(each)), onUnreadable)
      if (record !== undefined) yield record
    }
  }
}

const nameOf = (path: string): string => recordName(digestFromHex(hash('sha256', path)))

const VIEW_RECORD: RecordKind<ViewRecord> = {
  folder: 'views',
  shape: {
    path: text,
    manifest: digest,
    others: listOf(digest),
    companions: optional(listOf(digest)),
    layout: oneOf('files', 'hf'),
    mode: oneOf('symlink', 'copy', 'hardlink'),
    device: text
  },
  decode(record, file) {
    const { path } = record
    if (!path.startsWith('/')) throw new CorruptStateError(file, '"path" is not an absolute path')
    if (!file.endsWith(`/${nameOf(path)}`)) throw new CorruptStateError(file, '"path" is not the one of this file')
    return record
  },
  encode: (record) => record
}
