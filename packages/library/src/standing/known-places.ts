import { readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * The disks that the folders of standing views were on, so that the empty mount point of a disk that is away is not
 * taken for an empty folder. Below `cache`: without it, a folder is simply filled.
 */
export class KnownPlaces {
  readonly #file: string
  #devices: Record<string, string> | undefined

  constructor(root: string) {
    this.#file = join(root, 'cache', 'standing-places.json')
  }

  /** Whether the disk of a folder is not the one it was on, and nothing of ours is there. */
  async isAway(path: string): Promise<boolean> {
    const known = (await this.#read())[path]
    if (known === undefined || (await deviceAt(path)) === known) return false
    return (await stat(join(path, '.svc')).catch(() => undefined)) === undefined
  }

  async note(path: string): Promise<void> {
    const devices = await this.#read()
    const device = await deviceAt(path)
    if (devices[path] === device) return
    devices[path] = device
    await this.#write(devices)
  }

  async forget(path: string): Promise<void> {
    const devices = await this.#read()
    if (devices[path] === undefined) return
    delete devices[path]
    await this.#write(devices)
  }

  async #read(): Promise<Record<string, string>> {
    if (this.#devices !== undefined) return this.#devices
    const found: unknown = await readFile(this.#file, 'utf8')
      .then(JSON.parse)
      .catch(() => undefined)
    const entries = typeof found === 'object' && found !== null ? Object.entries(found) : []
    return (this.#devices = Object.fromEntries(entries.filter(([, device]) => typeof device === 'string')))
  }

  async #write(devices: Record<string, string>): Promise<void> {
    // it can be learned again: a failure costs nothing now
    await writeFile(this.#file, JSON.stringify(devices)).catch(() => undefined)
  }
}

/** That of the folder, or of the nearest one above it that exists. */
async function deviceAt(path: string): Promise<string> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined)
  if (stats !== undefined) return String(stats.dev)
  return dirname(path) === path ? '' : deviceAt(dirname(path))
}
