import { LRUCache } from 'lru-cache'
import { type OpenFolder, openParent } from './folder.ts'

const MAX_HELD = 16

interface CachedParent {
  readonly folder: Promise<OpenFolder>
  users: number
  evicted: boolean
}

/**
 * Keeps the folders of listed files open, the 16 most recently used: the walk to a file costs two system calls per
 * component, a third of importing a small one. Files are looked up in the folder that the first walk found, whatever
 * is at its path now.
 */
export class HeldParents {
  readonly #held = new LRUCache<string, CachedParent>({
    max: MAX_HELD,
    dispose: (held) => {
      held.evicted = true
      if (held.users === 0) void shut(held)
    }
  })

  /** Calls `use` with the folder of a file's absolute, normalized path, and the file's name. @throws as `openParent` */
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
      if (held.evicted && held.users === 0) await shut(held)
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
    const unused = [...this.#held.values()].filter(({ users }) => users === 0)
    this.#held.clear()
    await Promise.all(unused.map(shut))
  }

  #take(key: string, path: string): CachedParent {
    const known = this.#held.get(key)
    if (known !== undefined) return known
    const held = { folder: openParent(path).then(({ parent }) => parent), users: 0, evicted: false }
    this.#held.set(key, held)
    held.folder.catch(() => {
      if (this.#held.peek(key) === held) this.#held.delete(key)
    })
    return held
  }
}

/** A folder that could not be opened needs no closing, and closing one that was only read loses nothing. */
const shut = ({ folder }: CachedParent): Promise<void> => folder.then((open) => open.close()).catch(() => undefined)
