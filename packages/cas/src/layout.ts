import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { type FilePort, type FileStat, replaceFile, syncFolderSync } from '@svc/internal-files'
import { digestFromHex, digestHex, type Sha256Digest } from '@svc/ref'
import { CasError, ioError } from './errors.ts'

/** The only version of the layout so far: spec disk.1. */
const FORMAT_TEXT = 'svc-store 1\n'

const SHARD = /^[0-9a-f]{2}$/
const REST = /^[0-9a-f]{62}$/

/** The paths of one store. Digests become paths nowhere else. */
export type Layout = ReturnType<typeof layoutOf>

export function layoutOf(root: string) {
  const blobs = join(root, 'blobs', 'sha256')
  const incoming = join(root, 'incoming')
  const quarantine = join(root, 'quarantine')
  return {
    root,
    blobs,
    incoming,
    quarantine,
    format: join(root, 'format'),
    lock: join(root, 'lock'),
    owner: join(root, 'owner'),
    // concatenated rather than joined, because every lookup of a blob comes through here. Both parts are normalized.
    shard: (digest: Sha256Digest): string => `${blobs}${sep}${digestHex(digest).slice(0, 2)}`,
    blob: (digest: Sha256Digest): string => {
      const hex = digestHex(digest)
      return `${blobs}${sep}${hex.slice(0, 2)}${sep}${hex.slice(2)}`
    },
    /** A fresh name within `quarantine/`. */
    aside: (digest: Sha256Digest): string => join(quarantine, `${digestHex(digest)}-${randomId().slice(0, 16)}`),
    part: (id: string): string => join(incoming, `${id}.part`),
    journal: (id: string): string => join(incoming, `${id}.json`)
  }
}

const ID_BYTES = 16
let pool = Buffer.alloc(0)

/** 32 random hex characters. Drawn for many ids at once: a draw costs as much as several system calls. */
export function randomId(): string {
  if (pool.length < ID_BYTES) pool = randomBytes(ID_BYTES * 128)
  const id = pool.toString('hex', 0, ID_BYTES)
  pool = pool.subarray(ID_BYTES)
  return id
}

/** The folders of blobs, which every store has, in order. */
export const SHARDS: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))

const isShard = (name: string): boolean => SHARD.test(name)

/** The digest of the file `name` in a shard; undefined for a file that is not a blob. */
export const digestAt = (shard: string, name: string): Sha256Digest | undefined =>
  SHARD.test(shard) && REST.test(name) ? digestFromHex(shard + name) : undefined

function makeFolder(port: FilePort, path: string): boolean {
  try {
    port.mkdirSync(path, 0o700)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    requireFolder(port, path)
    return false
  }
  port.chmodSync(path, 0o700)
  return true
}

/** @throws CasError `E_FORMAT` */
export function requireFolder(port: FilePort, path: string): void {
  const stat = port.tryLstatSync(path)
  if (stat?.isDirectory() === true) return
  const what = stat === undefined ? 'is gone' : 'is not a folder'
  throw new CasError(
    'E_FORMAT',
    `${path} ${what}, and every store needs it: bring it back, or restore the store from a backup`,
    { path }
  )
}

/** @throws CasError `E_UNSAFE_ROOT` for a folder that another user owns, or others may write to */
function requireOwn(root: string, { uid, mode }: FileStat): void {
  const user = process.geteuid?.()
  if (user !== undefined && uid !== user)
    throw new CasError('E_UNSAFE_ROOT', `${root} belongs to user ${uid}, not to ${user}: choose a folder of your own`, {
      path: root
    })
  if ((mode & 0o022) === 0) return
  const written = (mode & 0o777).toString(8)
  throw new CasError(
    'E_UNSAFE_ROOT',
    `${root} is writable by others (mode ${written}): check its content, then chmod 700 it`,
    { path: root }
  )
}

/** What is at a root: nothing, a folder that may become a store, or a store. */
export type RootContent = 'absent' | 'empty' | 'store'

/**
 * Looks at a root without changing it, so that a folder that is refused stays as it was. A store must have its blobs.
 * @throws CasError `E_UNSAFE_ROOT` for a folder that another user owns or others may write to; `E_FORMAT` if it is no
 *   folder, or one with other content, with another version of the layout, or without its blobs; `E_IO`
 */
export function rootContent(port: FilePort, layout: Layout): RootContent {
  const { root } = layout
  try {
    const stat = port.tryLstatSync(root)
    if (stat === undefined) return 'absent'
    requireFolder(port, root)
    requireOwn(root, stat)
    if (!hasFormat(port, layout)) return 'empty'
    requireBlobs(port, layout)
    return 'store'
  } catch (error) {
    throw ioError(error, 'look at the root folder', root)
  }
}

/** Creates the root folder if it is absent; its parent must exist. @throws CasError as {@link rootContent} */
export function makeRoot(port: FilePort, root: string): void {
  try {
    makeFolder(port, root)
    requireOwn(root, port.lstatSync(root))
  } catch (error) {
    throw ioError(error, 'prepare the root folder', root)
  }
}

/**
 * Names that may exist in a root without a `format`: those of an interrupted first start, or of folders that the daemon
 * made first.
 */
const OWN_NAMES = new Set([
  'blobs',
  'incoming',
  'quarantine',
  'state',
  'cache',
  'lock',
  'owner',
  'lost+found',
  'moving.json'
])

/** @throws CasError `E_FORMAT` for a store without its blobs, or with an empty folder in their place */
function requireBlobs(port: FilePort, layout: Layout): void {
  requireFolder(port, layout.blobs)
  if (port.readdirSync(layout.blobs).some(isShard)) return
  throw new CasError('E_FORMAT', `${layout.blobs} is empty, which a store never is; is its disk mounted?`, {
    path: layout.blobs
  })
}

/** Creates folders below `root` with their parents, durably. */
export function makeStoreFolders(port: FilePort, root: string, folders: readonly string[]): void {
  for (const folder of folders) {
    let at = root
    for (const name of folder.split('/')) {
      if (makeFolder(port, join(at, name))) syncFolderSync(port, at)
      at = join(at, name)
    }
  }
}

/**
 * Checks `format`, or writes it in a new folder, closes the root to others, and creates all folders, durably.
 * @returns whether the store is new
 * @throws CasError `E_FORMAT` for a folder with other content, with another version of the layout, or without its blobs.
 */
export async function prepareLayout(port: FilePort, layout: Layout, afterCrash: boolean): Promise<boolean> {
  try {
    // what a store has lost must not be made anew.
    const isNew = rootContent(port, layout) !== 'store'
    closeToOthers(port, layout.root)
    const blobsRoot = join(layout.root, 'blobs')
    let fresh = false
    for (const folder of [blobsRoot, layout.blobs, layout.incoming, layout.quarantine]) {
      fresh = makeFolder(port, folder) || fresh
    }
    prepareShards(port, layout, afterCrash)
    if (fresh || afterCrash) syncFolderSync(port, blobsRoot)
    if (isNew) {
      syncAncestors(port, layout.root)
      await replaceFile(port, layout.format, Buffer.from(FORMAT_TEXT))
    }
    if (fresh || afterCrash) syncFolderSync(port, layout.root)
    return isNew
  } catch (error) {
    throw ioError(error, 'prepare the store', layout.root)
  }
}

function closeToOthers(port: FilePort, root: string): void {
  if ((port.lstatSync(root).mode & 0o077) !== 0) port.chmodSync(root, 0o700)
}

function prepareShards(port: FilePort, layout: Layout, afterCrash: boolean): void {
  const present = new Set(port.readdirSync(layout.blobs))
  let fresh = false
  for (const name of SHARDS) {
    const shard = `${layout.blobs}${sep}${name}`
    if (present.has(name)) requireFolder(port, shard)
    else fresh = makeFolder(port, shard) || fresh
    // a killed process may have linked names without syncing their folder: make them durable now, since they count
    // from here on.
    if (afterCrash) syncFolderSync(port, shard)
  }
  if (fresh || afterCrash) syncFolderSync(port, layout.blobs)
}

/** Errors of opening folders in which this process cannot have created anything. */
const NOT_OURS = new Set(['EACCES', 'EPERM', 'EROFS', 'EINVAL'])

/** The names of a new store and of its new parent folders must be durable as well. */
function syncAncestors(port: FilePort, root: string): void {
  for (let at = dirname(root); ; at = dirname(at)) {
    try {
      syncFolderSync(port, at)
    } catch (error) {
      if (!NOT_OURS.has(errnoOf(error) ?? '')) throw error
    }
    if (at === dirname(at)) return
  }
}

/** @throws CasError `E_FORMAT` for another version, or a folder with other content */
function hasFormat(port: FilePort, layout: Layout): boolean {
  const text = readSmallFile(port, layout.format, 64)
  if (text === FORMAT_TEXT) return true
  if (text !== undefined)
    throw new CasError(
      'E_FORMAT',
      `${layout.format} does not say "${FORMAT_TEXT.trim()}": another version made it, or it is damaged`,
      { path: layout.format }
    )
  const other = port
    .readdirSync(layout.root)
    .find((name) => !OWN_NAMES.has(name) && !/^format\.(?:[0-9a-f]{16}){1,2}\.tmp$/.test(name))
  if (other === undefined) return false
  throw new CasError(
    'E_FORMAT',
    `${layout.root} is not a store: it has no "format" file, but holds "${other}"; choose an empty folder`,
    { path: layout.root }
  )
}

/** The first `maxBytes` of a file that is not a link; undefined if it is absent. @throws system errors */
export function readSmallFile(port: FilePort, path: string, maxBytes: number): string | undefined {
  let fd: number
  try {
    fd = port.openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    return ifAbsent(error)
  }
  try {
    const text = new Uint8Array(maxBytes)
    const count = port.readSync(fd, text, 0, text.length, 0)
    return Buffer.from(text.subarray(0, count)).toString('latin1')
  } finally {
    port.closeSync(fd)
  }
}
