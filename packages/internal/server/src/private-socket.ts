import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { link, lstat, open, readFile, readlink, unlink } from 'node:fs/promises'
import { createConnection, type Server } from 'node:net'
import { basename, dirname, join, resolve } from 'node:path'
import { makeFolders } from '@svc/internal-files'

/** `sun_path` has 108 bytes, including a NUL. */
const MAX_SOCKET_PATH_BYTES = 107

/** Makes the error of a socket that cannot be had. */
export type SocketRefusal = (message: string, options?: { readonly cause?: unknown }) => Error

/** Where to listen. */
export interface SocketPlace {
  readonly path: string
  /** The setting that names another path, for messages. */
  readonly setting: string
  /** Why the folder cannot be trusted, to follow its name; absent for a path chosen by the user (spec disk.14, disk.15). */
  readonly folderProblem?: (
    facts: { readonly isFolder: boolean; readonly uid: number; readonly mode: number },
    user: number
  ) => string | undefined
  readonly refusal: SocketRefusal
}

/** The state of a socket's path: this process's socket, nothing, something else, or unknown. */
type SocketPresence = 'ours' | 'gone' | 'taken' | 'unknown'

/** Identifies the listening socket of this process: at the end only that one is removed. */
export interface ClaimedSocket {
  readonly path: string
  /** Checks the path now. */
  look(): Promise<SocketPresence>
  /** Removes the socket file if it is still this process's. Idempotent. */
  release(): Promise<void>
}

/** The file descriptor that a service manager passed to this process, or undefined (`sd_listen_fds(3)`). */
export function activatedDescriptor(
  env: Readonly<Record<string, string | undefined>>,
  refusal: SocketRefusal
): number | undefined {
  const { LISTEN_PID: pid, LISTEN_FDS: count } = env
  if (pid === undefined || count === undefined || Number(pid) !== process.pid) return undefined
  if (Number(count) !== 1) throw refusal(`LISTEN_FDS is ${count}; exactly one socket is accepted`)
  return 3
}

/**
 * Listens on a Unix socket of mode 0600 from its creation (spec disk.16). A socket there that refuses connections is a
 * leftover and replaced; anything else is left alone. The folder of a default path gets 0700, and must be the user's
 * own and no link; that of a path chosen by the user is created with 0700 if absent. @throws the refusal of `place`
 */
export async function claimSocket(server: Server, place: SocketPlace): Promise<ClaimedSocket> {
  await checkSocket(place)
  const path = resolve(place.path)
  // libuv removes the path that it bound when the server closes, even if the file belongs to another process by then.
  // So it binds a temporary name; the real one is a hard link to the same socket, which only `release` removes.
  const bound = join(dirname(path), temporaryName(path))
  await listen(server, bound, place.refusal)
  const { dev, ino } = await lstat(bound, { bigint: true })
  try {
    await link(bound, path)
  } catch (cause) {
    server.close()
    throw place.refusal(
      codeOf(cause) === 'EEXIST'
        ? `already starting: ${path} was taken meanwhile`
        : `cannot make ${path} (${codeOf(cause)})`,
      { cause }
    )
  }
  await unlink(bound)
  let released = false
  const look = async (): Promise<SocketPresence> => {
    const now = await lstat(path, { bigint: true }).catch((error: unknown) => codeOf(error))
    if (typeof now === 'string') return now === 'ENOENT' || now === 'ENOTDIR' ? 'gone' : 'unknown'
    return now.dev === dev && now.ino === ino ? 'ours' : 'taken'
  }
  return {
    path,
    look,
    async release() {
      if (released) return
      released = true
      if ((await look()) === 'ours') await unlink(path).catch(() => undefined)
    }
  }
}

/** All checks of a socket path before listening: folder, leftover, path in use. @throws the refusal of `place` */
export async function checkSocket(place: SocketPlace): Promise<void> {
  const { setting, refusal } = place
  const path = resolve(place.path)
  const length = Buffer.byteLength(path)
  if (length > MAX_SOCKET_PATH_BYTES) {
    throw refusal(
      `the socket path has ${length} bytes, and the limit is ${MAX_SOCKET_PATH_BYTES}: ${path}; set ${setting} to a shorter one`
    )
  }
  if (path.includes('\0')) throw refusal('the socket path contains a NUL character')
  await prepareFolder(dirname(path), place)
  await removeOrphan(path, place)
}

/** Takes over a listening socket from a service manager, which owns the file. @throws a refusal */
export async function listenOnDescriptor(server: Server, fd: number, refusal: SocketRefusal): Promise<ClaimedSocket> {
  await once(server.listen({ fd }), 'listening').catch((cause: unknown) => {
    throw refusal(`cannot listen on the descriptor ${fd} that LISTEN_FDS names (${codeOf(cause)})`, { cause })
  })
  // Node knows the address of a descriptor only if it is a network one
  if (server.address() !== null) {
    server.close()
    throw refusal(`the descriptor ${fd} that LISTEN_FDS names is not a Unix socket; the API has no other listener`)
  }
  const path = await pathOfDescriptor(fd, refusal)
  // systemd's own default is 0666, and the mode is the only access control
  const mode = (await lstat(path).catch(() => undefined))?.mode
  if (mode !== undefined && (mode & 0o077) !== 0) {
    server.close()
    throw refusal(
      `others may open the socket ${path} (mode ${(mode & 0o777).toString(8)}), and anyone who can open it may make any call; set SocketMode=0600 in its unit`
    )
  }
  return { path, look: async () => 'ours', release: async () => undefined }
}

/** The path that a listening Unix socket is bound to, from /proc. @throws a refusal */
async function pathOfDescriptor(fd: number, refusal: SocketRefusal): Promise<string> {
  const inode = /^socket:\[(\d+)\]$/.exec(await readlink(`/proc/self/fd/${fd}`).catch(() => ''))?.[1]
  const table = await readFile('/proc/net/unix', 'utf8').catch(() => '')
  for (const line of table.split('\n')) {
    const fields = line.trim().split(/\s+/)
    if (inode !== undefined && fields[6] === inode && fields[7]?.startsWith('/') === true)
      return fields.slice(7).join(' ')
  }
  throw refusal(`the path of the socket that LISTEN_FDS names cannot be determined`)
}

/** Not longer than the real name, so that paths at the length limit still work. */
function temporaryName(path: string): string {
  const length = Math.max(4, Math.min(12, basename(path).length))
  return `.${randomBytes(12)
    .toString('hex')
    .slice(0, length - 1)}`
}

async function prepareFolder(folder: string, { setting, folderProblem, refusal }: SocketPlace): Promise<void> {
  try {
    await makeFolders(folder, 0o700)
  } catch (cause) {
    throw refusal(`cannot make the socket's folder ${folder} (${codeOf(cause)}); set ${setting} to another place`, {
      cause
    })
  }
  if (folderProblem === undefined) return
  let handle
  try {
    handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch (cause) {
    throw refusal(
      `the socket's folder ${folder} is not a plain folder (${codeOf(cause)}); remove it, or set ${setting}`,
      { cause }
    )
  }
  try {
    const stat = await handle.stat()
    const user = process.geteuid?.() ?? stat.uid
    // the daemon corrects the mode of its own folder, which is then checked like clients do
    if (stat.uid === user && (stat.mode & 0o077) !== 0) await handle.chmod(0o700)
    const { uid, mode } = await handle.stat()
    const problem = folderProblem({ isFolder: true, uid, mode }, user)
    if (problem !== undefined) {
      throw refusal(`the socket's folder ${folder} ${problem}; remove it, or set ${setting}`)
    }
  } finally {
    await handle.close()
  }
}

async function removeOrphan(path: string, { setting, refusal }: SocketPlace): Promise<void> {
  const before = await lstat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw refusal(`cannot look at ${path} (${codeOf(error)})`, { cause: error })
  })
  if (before === undefined) return
  if (!before.isSocket())
    throw refusal(`${path} exists and is not a socket; it is left alone. Remove it, or set ${setting}`)
  switch (await probe(path)) {
    case 'answers':
      throw refusal(`already running: something answers on ${path}`)
    case 'unknown':
      throw refusal(`${path} is a socket that can be neither reached nor replaced; remove it, or set ${setting}`)
    case 'orphan': {
      const now = await lstat(path, { bigint: true }).catch(() => undefined)
      if (now === undefined) return
      if (now.ino !== before.ino || now.dev !== before.dev)
        throw refusal(`already starting: ${path} was replaced meanwhile`)
      await unlink(path)
    }
  }
}

const probe = (path: string): Promise<'answers' | 'orphan' | 'unknown'> =>
  new Promise((settle) => {
    const socket = createConnection({ path })
    const done = (verdict: 'answers' | 'orphan' | 'unknown'): void => {
      socket.destroy()
      settle(verdict)
    }
    // a listener with a full backlog responds with EAGAIN, or not at all: it is alive
    socket.setTimeout(2000, () => done('answers'))
    socket.once('connect', () => done('answers'))
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') done('orphan')
      else done(error.code === 'EAGAIN' ? 'answers' : 'unknown')
    })
  })

async function listen(server: Server, path: string, refusal: SocketRefusal): Promise<void> {
  const listening = once(server, 'listening')
  // `bind` happens within `listen`, so the mask applies to exactly that call
  const mask = process.umask(0o177)
  try {
    server.listen({ path, backlog: 511 })
  } finally {
    process.umask(mask)
  }
  await listening.catch((cause: unknown) => {
    const isTaken = codeOf(cause) === 'EADDRINUSE'
    const what = isTaken
      ? `already starting: ${path} was taken meanwhile`
      : `cannot listen on ${path} (${codeOf(cause)})`
    throw refusal(what, { cause })
  })
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown error'
