import { lstatSync, readFileSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { formatTime } from '../format.ts'
import { DIFFER } from '../versions.ts'
import { type Check, codeOf, type DoctorInput, type Found, say } from './finding.ts'

/** Whether the daemon answers, and has the same version. */
export const daemon: Check = ({ status, silence, socketPath, version }) => {
  if (status === undefined)
    return [
      say.bad(
        silence ?? `no daemon answers at ${socketPath}`,
        'svc start starts it now, svc service install at each login'
      )
    ]
  if (status.version !== version) return [say.warn(`svcd ${status.version} runs, and this is svc ${version}`, DIFFER)]
  return [say.ok(`svcd ${status.version} answers, pid ${status.pid}, since ${formatTime(status.startedAt)}`)]
}

/** The socket and its folder: whether they exist, belong to the user, and are closed to others. */
export const socket: Check = (subject) => {
  const { socketPath, status } = subject
  const found: Found[] = []
  const folder = dirname(socketPath)
  const look = (path: string): Stats | undefined => {
    try {
      return lstatSync(path)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT')
        found.push(say.bad(`${path} cannot be read (${codeOf(error)})`, 'check the permissions of its folders'))
      return undefined
    }
  }
  const above = look(folder)
  const own = above === undefined ? undefined : look(socketPath)
  if (above !== undefined) found.push(...ownership(subject, folder, above, 0o022))
  if (own === undefined) {
    if (found.length === 0 && status === undefined)
      found.push(say.note(`there is no socket at ${socketPath} yet`, 'the daemon makes it when it starts'))
  } else if (!own.isSocket()) {
    found.push(say.bad(`${socketPath} is not a socket`, 'move it away, or set SVC_SOCKET to another path'))
  } else {
    found.push(...ownership(subject, socketPath, own, 0o077))
    if (status === undefined)
      found.push(say.warn('the socket exists, but no daemon answers', 'the next start of svcd replaces it'))
  }
  if (Buffer.byteLength(socketPath) > (subject.platform === 'darwin' ? 103 : 107))
    found.push(say.bad(`the path of the socket is too long: ${socketPath}`, 'set SVC_SOCKET to a shorter one'))
  return found.length > 0 ? found : [say.ok(`only you can use ${socketPath}`)]
}

/** `forbidden` are the mode bits that grant too much to others. */
function ownership({ uid }: DoctorInput, path: string, stat: Stats, forbidden: number): Found[] {
  const mode = stat.mode & 0o7777
  if (stat.uid !== uid && uid !== 0)
    return [say.bad(`${path} belongs to user ${stat.uid}, not to you`, 'remove it as that user, or set SVC_SOCKET')]
  // folders that everyone may write to are acceptable with the sticky bit, when only owners can remove their files.
  if ((mode & forbidden) !== 0 && (mode & 0o1000) === 0)
    return [
      say.bad(
        `others may use ${path} (mode ${mode.toString(8)}), and anyone who can open the socket may do anything`,
        `chmod ${stat.isDirectory() ? '700' : '600'} ${path}`
      )
    ]
  return []
}

/** Enough for a daemon with many open files and peers. */
const ENOUGH_FILES = 4096

export const fileLimit: Check = ({ status, platform }) => {
  if (status === undefined || platform !== 'linux') return []
  let soft: string | undefined
  try {
    soft = /^Max open files\s+(\S+)/m.exec(readFileSync(`/proc/${status.pid}/limits`, 'utf8'))?.[1]
  } catch {
    return [say.note("the daemon's limit of open files cannot be read: it runs as another user, or in a container")]
  }
  return [judgeFileLimit(soft)]
}

/** `soft` as printed in /proc. */
export function judgeFileLimit(soft: string | undefined): Found {
  if (soft === 'unlimited' || Number(soft) >= ENOUGH_FILES) return say.ok(`the daemon may open ${soft} files`)
  return say.warn(
    `the daemon may open only ${soft} files: many models and peers need more`,
    `ulimit -n ${ENOUGH_FILES} before svcd, or LimitNOFILE= of its unit`
  )
}

export const node: Check = () => [judgeNode(process.versions.node)]

/** The oldest version of Node that the packages support. */
export const OLDEST_NODE = [22, 19] as const

export function judgeNode(version: string): Found {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldest, oldestMinor] = OLDEST_NODE
  if (major > oldest || (major === oldest && minor >= oldestMinor))
    return say.ok(`Node ${version}, ${process.execPath}`)
  return say.bad(
    `Node ${version} is too old`,
    `install ${OLDEST_NODE.join('.')} or newer, or use the archive, which brings its own`
  )
}
