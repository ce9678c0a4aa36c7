import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { type FilePort, replaceFile } from '@svc/internal-files'
import { CasError, ioError } from './errors.ts'
import { type Layout, makeStoreFolders, type RootContent, readSmallFile, requireFolder, rootContent } from './layout.ts'
import type { RootLock } from './root-lock.ts'
import type { StoreOwner } from './store-owner.ts'

const FILE = 'id'
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const MAX_BYTES = 64

/** The id in a root's `id` file; undefined if there is no such file. @throws CasError `E_FORMAT`, `E_IO` */
function storeIdIn(port: FilePort, root: string): string | undefined {
  const path = join(root, FILE)
  try {
    const text = readSmallFile(port, path, MAX_BYTES)
    if (text === undefined) return undefined
    const id = text.slice(0, -1)
    if (text === `${id}\n` && UUID.test(id)) return id
    throw new CasError('E_FORMAT', `${path} contains no store id: restore it from a backup`, { path })
  } catch (error) {
    throw ioError(error, 'read the id of the store', path)
  }
}

/** What is at a root (spec disk.21): no store at `absent` or `empty`, which has no id. */
export interface RootState {
  readonly content: RootContent
  /** That of the store; undefined also for one of an older version, which gets its id when it is opened. */
  readonly id: string | undefined
}

/**
 * Looks at a root as opening it would, and changes nothing.
 * @throws CasError `E_OTHER_STORE` if it does not hold the expected store, `E_UNSAFE_ROOT`, `E_FORMAT`, `E_IO`
 */
export function rootState(
  port: FilePort,
  layout: Layout,
  {
    folders = [],
    expectedId
  }: { readonly folders?: readonly string[] | undefined; readonly expectedId?: string | undefined }
): RootState {
  const { root } = layout
  if (expectedId !== undefined) requireStoreId(port, root, expectedId)
  const content = rootContent(port, layout)
  const id = content === 'store' ? storeIdIn(port, root) : undefined
  if (id !== undefined) for (const folder of folders) requireFolder(port, join(root, folder))
  return { content, id }
}

/** An empty mount point must not become a new store. @throws CasError `E_OTHER_STORE` */
function requireStoreId(port: FilePort, root: string, expectedId: string): void {
  const foundId = storeIdIn(port, root)
  if (foundId === expectedId) return
  const found = foundId === undefined ? 'no store with an id' : `the store ${foundId}`
  throw new CasError('E_OTHER_STORE', `${root} holds ${found}, but ${expectedId} is expected; is its disk mounted?`, {
    path: root,
    expectedId,
    ...(foundId !== undefined && { foundId })
  })
}

/**
 * The id of a store that has a layout. A store without one gets `newId` once its further folders exist; from then on
 * these folders are required (spec disk.21). @throws CasError `E_FORMAT` naming a missing folder, `E_IO`
 */
export async function prepareIdentity(
  port: FilePort,
  layout: Layout,
  { folders, newId = randomUUID() }: { readonly folders: readonly string[]; readonly newId?: string | undefined }
): Promise<string> {
  const known = storeIdIn(port, layout.root)
  try {
    if (known === undefined) {
      makeStoreFolders(port, layout.root, folders)
      await replaceFile(port, join(layout.root, FILE), Buffer.from(`${newId}\n`))
      return newId
    }
    for (const folder of folders) requireFolder(port, join(layout.root, folder))
    return known
  } catch (error) {
    throw ioError(error, 'prepare the store', layout.root)
  }
}

/** Checks that the root is still the folder that the lock was taken in, is ours alone, and has what every store has. */
export class RootGuard {
  readonly #layout: Layout
  readonly #id: string
  readonly #lock: Pick<RootLock, 'isInPlace'>
  readonly #owner: Pick<StoreOwner, 'isSole' | 'taker'>
  readonly #folders: readonly string[]

  constructor(
    layout: Layout,
    id: string,
    lock: Pick<RootLock, 'isInPlace'>,
    owner: Pick<StoreOwner, 'isSole' | 'taker'>,
    folders: readonly string[]
  ) {
    this.#layout = layout
    this.#id = id
    this.#lock = lock
    this.#owner = owner
    this.#folders = [
      layout.blobs,
      layout.incoming,
      layout.quarantine,
      ...folders.map((each) => join(layout.root, each))
    ]
  }

  /** One synchronous `lstat`, about 2 µs. @throws CasError `E_STORE_GONE`, `E_IO` */
  requireRoot(): void {
    if (this.#lock.isInPlace() && this.#owner.taker === undefined) return
    throw gone(this.#whatIsThere(), this.#layout.root)
  }

  /**
   * Like {@link requireRoot}, and reads who owns the store: for what would destroy another owner's work.
   * @throws CasError `E_STORE_GONE`, `E_IO`
   */
  async requireOwner(): Promise<void> {
    this.requireRoot()
    if (await this.#owner.isSole()) return
    // the root may have gone away meanwhile
    this.requireRoot()
    throw gone(
      `${this.#layout.owner} is missing, so that another process may have been here: restart the daemon`,
      this.#layout.root
    )
  }

  /** Like {@link requireRoot}, and checks the folders that every store has. @throws CasError `E_STORE_GONE`, `E_IO` */
  check(): void {
    this.requireRoot()
    for (const folder of this.#folders) this.#requireFolder(folder)
  }

  /**
   * Called where a name was not found: it is absent only if the store and the folder for the name are there.
   * @throws CasError `E_STORE_GONE`, `E_IO`
   */
  requireFolderFor(path: string): void {
    this.requireRoot()
    this.#requireFolder(path.slice(0, path.lastIndexOf('/')))
  }

  #requireFolder(folder: string): void {
    let isFolder: boolean | undefined
    try {
      isFolder = fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()
    } catch (error) {
      if (errnoOf(error) !== 'ENOTDIR') throw ioError(error, 'look for a folder of the store', folder)
    }
    if (isFolder === true) return
    const name = folder.slice(this.#layout.root.length + 1)
    throw gone(`the store's folder ${name} is missing: bring it back, then verify the whole store`, folder)
  }

  #whatIsThere(): string {
    const { root } = this.#layout
    const { taker } = this.#owner
    if (taker !== undefined) return `${taker} took the store over: stop one of the two, then restart the other`
    const advice = 'bring the store back (is its disk mounted?); if it stays like this, restart the daemon'
    try {
      const id = fs.readFileSync(join(root, FILE), 'utf8').trim()
      if (id !== this.#id && UUID.test(id)) return `another store (${id}) is where ${this.#id} was: ${advice}`
    } catch {
      // said below
    }
    try {
      const what = fs.readdirSync(root).length === 0 ? 'an empty folder' : 'another folder'
      return `${what} is where the store was: ${advice}`
    } catch {
      return `the store's folder is gone: ${advice}`
    }
  }
}

const gone = (message: string, path: string): CasError => new CasError('E_STORE_GONE', message, { path })
