import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ViewLayout, ViewMode } from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'
import type { ReplacedFiles } from './replace.ts'
import { CorruptStateError, digestField, onlyKeys, parseStateText } from './strict.ts'

/** A view at a place chosen by a user. */
export interface ViewRecord {
  /** Absolute, with links in its parent folders resolved. */
  readonly path: string
  readonly manifest: Sha256Digest
  readonly layout: ViewLayout
  readonly mode: ViewMode
  /** That of the parent folder: if it differs, the disk with the view is not mounted. */
  readonly device: string
}

const HEX_FILE = /^[0-9a-f]{64}\.json$/

/**
 * `state/views/<SHA-256 of the path>.json`: the places of views, so that their artifacts are kept. The record is
 * durable before the view is made. Managed views below `<root>/views` need none.
 */
export class ViewRecords {
  readonly #folder: string
  readonly #files: ReplacedFiles

  /** `root` is the folder of the store; `files` has opened `<root>/state`. */
  constructor(root: string, files: ReplacedFiles) {
    this.#folder = join(root, 'state', 'views')
    this.#files = files
  }

  /** @throws CorruptStateError */
  async read(path: string): Promise<ViewRecord | undefined> {
    return this.#read(nameOf(path))
  }

  async write({ path, manifest, layout, mode, device }: ViewRecord): Promise<void> {
    const text = `${JSON.stringify({ path, manifest, layout, mode, device }, null, 2)}\n`
    await this.#files.write(join(this.#folder, nameOf(path)), text)
  }

  async remove(path: string): Promise<void> {
    await this.#files.remove(join(this.#folder, nameOf(path)))
  }

  /** @throws CorruptStateError */
  async *list(): AsyncGenerator<ViewRecord> {
    let names: string[]
    try {
      names = await readdir(this.#folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    for (const name of names.filter((each) => HEX_FILE.test(each)).sort()) {
      const record = await this.#read(name)
      if (record !== undefined) yield record
    }
  }

  async #read(name: string): Promise<ViewRecord | undefined> {
    const bytes = await this.#files.read(join(this.#folder, name))
    return bytes === undefined ? undefined : parseViewRecord(bytes, `state/views/${name}`)
  }
}

const nameOf = (path: string): string => `${createHash('sha256').update(path).digest('hex')}.json`

function parseViewRecord(bytes: Uint8Array, file: string): ViewRecord {
  const fields = parseStateText(bytes, file)
  onlyKeys(fields, ['path', 'manifest', 'layout', 'mode', 'device'], file)
  const { path, layout, mode, device } = fields
  if (typeof path !== 'string' || !path.startsWith('/')) throw new CorruptStateError(file, '"path" is no absolute path')
  if (layout !== 'files' && layout !== 'hf') throw new CorruptStateError(file, '"layout" is unknown')
  if (mode !== 'symlink' && mode !== 'copy' && mode !== 'hardlink') {
    throw new CorruptStateError(file, '"mode" is unknown')
  }
  if (typeof device !== 'string') throw new CorruptStateError(file, '"device" is not a string')
  return { path, manifest: digestField(fields.manifest, file, '"manifest"'), layout, mode, device }
}
