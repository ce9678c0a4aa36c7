import { type OpenFolder, openParent } from './folder.ts'

const MAX_HELD = 16

interface CachedParent {
  readonly folder: Promise<OpenFolder>
  users: number
  evicted: boolean
}

/**
 * Keeps the folders of listed files open: the walk to a file costs two system calls per component, a third of importing
 * a small one. At most the 16 most recently used stay open. Files are looked up in the folder that the first walk
 * found, whatever is at its path now.
 */
export class HeldParents {
  readonly #held = new Map<string, CachedParent>()

  /** Calls `use` with the folder of a file's absolute, normalised path, and the file's name. @throws as `openParent` */
  async with<T>(path: string, use: (parent: OpenFolder, name: string) => Promise<T>): Promise<T> {
    const { parent, name, release } = await this.hold(path)
    try {
      return await use(parent, name)
    } finally {
      await release()
    }
  }

  /** {@link with} in two steps: the folder stays open until `release`, which is called once. @throws as `openParent` */
  async hold(path: string): Promise<{ readonly parent: OpenFolder; readonly name: string; release(): Promise<void> }> {
    const slash = path.lastIndexOf('/')
    const held = this.#take(path.slice(0, slash), path)
    held.users++
    const release = async (): Promise<void> => {
      held.users--
      if (held.evicted && held.users === 0) await this.#shut(held)
    }
    try {
      return { parent: await held.folder, name: path.slice(slash + 1), release }
    } catch (error) {
      await release()
      throw error
    }
  }

  /** Closes unused folders; the others are closed after their last use. */
  async close(): Promise<void> {
    for (const key of [...this.#held.keys()]) await this.#evict(key)
  }

  #take(key: string, path: string): CachedParent {
    const known = this.#held.get(key)
    const held = known ?? { folder: openParent(path).then(({ parent }) => parent), users: 0, evicted: false }
    // most recently used: last in order
    this.#held.delete(key)
    this.#held.set(key, held)
    if (known === undefined) {
      held.folder.catch(() => {
        if (this.#held.get(key) === held) this.#held.delete(key)
      })
      const [oldest] = this.#held.keys()
      if (this.#held.size > MAX_HELD) void this.#evict(oldest!)
    }
    return held
  }

  async #evict(key: string): Promise<void> {
    const held = this.#held.get(key)
    if (held === undefined) return
    this.#held.delete(key)
    held.evicted = true
    if (held.users === 0) await this.#shut(held)
  }

  /** A folder that could not be opened needs no closing, and closing one that was only read loses nothing. */
  async #shut(held: CachedParent): Promise<void> {
    await held.folder.then((folder) => folder.close()).catch(() => undefined)
  }
}
