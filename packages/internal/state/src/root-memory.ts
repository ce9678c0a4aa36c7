import { createHash } from 'node:crypto'
import { readdir, stat, unlink, utimes } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
import { DurableFolders, makeFolders, nodeFilePort, readWhole, replaceFile } from '@svc/internal-files'

/** What is remembered of a root. */
export interface Remembered {
  /** The id of the store that it had; undefined if nothing is known. */
  readonly id?: string
  /** Why that could not be read, for a warning: damage is no reason to refuse a start. */
  readonly problem?: string
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** A path has 4,096 bytes at most, each of which JSON writes as six. */
const MAX_BYTES = 32 << 10
const MAX_ROOTS = 256

/**
 * Which store each root had, kept outside of them (spec disk.26): one small private file per root, so that daemons do
 * not wait for each other. At most 256; the ones that have not been opened for longest go first.
 */
export class RootMemory {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The memory in a folder; undefined for one inside the root, which would go away with it. */
  static of(root: string, folder: string | undefined): RootMemory | undefined {
    return folder === undefined || `${folder}${sep}`.startsWith(`${root}${sep}`) ? undefined : new RootMemory(folder)
  }

  /** Never rejects. @param root absolute, links unresolved: a link to an absent disk stays the same root */
  async recall(root: string): Promise<Remembered> {
    const path = this.#path(root)
    try {
      const bytes = await readWhole(nodeFilePort, path, MAX_BYTES)
      if (bytes === undefined) return {}
      const known = JSON.parse(Buffer.from(bytes).toString('utf8')) as { root?: unknown; id?: unknown } | null
      if (known?.root === root && typeof known.id === 'string' && UUID.test(known.id)) return { id: known.id }
      return { problem: `${path} is damaged` }
    } catch (error) {
      return { problem: `${path} cannot be read: ${(error as Error).message}` }
    }
  }

  /** Durable when it resolves. @throws the system's error */
  async remember(root: string, id: string, clock: Clock = systemClock): Promise<void> {
    const path = this.#path(root)
    if ((await this.recall(root)).id === id) {
      // only says which one goes first
      const now = clock.now() / 1000
      await utimes(path, now, now).catch(() => undefined)
      return
    }
    const home = dirname(dirname(this.#folder))
    await makeFolders(home, 0o700)
    await new DurableFolders(nodeFilePort, home).make(this.#folder)
    await replaceFile(nodeFilePort, path, Buffer.from(`${JSON.stringify({ root, id })}\n`))
    await this.#forgetOldest()
  }

  #path(root: string): string {
    return join(this.#folder, `${createHash('sha256').update(root).digest('hex')}.json`)
  }

  async #forgetOldest(): Promise<void> {
    const names = await readdir(this.#folder)
    if (names.length <= MAX_ROOTS) return
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#folder, name)
        return {
          path,
          usedMs: await stat(path).then(
            ({ mtimeMs }) => mtimeMs,
            () => 0
          )
        }
      })
    )
    files.sort((a, b) => b.usedMs - a.usedMs)
    for (const { path } of files.slice(MAX_ROOTS)) await unlink(path).catch(() => undefined)
  }
}
