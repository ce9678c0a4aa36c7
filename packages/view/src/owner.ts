import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
import { processStart } from '@svc/internal-files'

const PREFIX = '.svc-view-'
const NAME = /^\.svc-view-([0-9a-f]{8})-([0-9a-f]{8})-(\d{1,10})-(\d{1,20})-[0-9a-f]{12}$/
/** After this time the folder of a maker in another container counts as abandoned. */
const FOREIGN_GRACE_MS = 24 * 3_600_000

function readOr(read: () => string, otherwise: string): string {
  try {
    return read()
  } catch {
    return otherwise
  }
}
const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Identifies this boot of the machine and this container: process ids have a meaning only within them. */
const boot = (): string => short(readOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'), hostname()))
const processNamespace = (): string => short(readOr(() => readlinkSync('/proc/self/ns/pid'), ''))

/** `0` if there is no /proc. */
const startOf = (pid: number): string => processStart(pid) ?? '0'

/** Folders that this process is working in; its own process id cannot tell whether they are in use. */
const mine = new Set<string>()

/** A new name for a working folder, which identifies its maker. Release it with {@link releaseName}. */
export function takeName(): string {
  const random = randomBytes(6).toString('hex')
  const name = `${PREFIX}${boot()}-${processNamespace()}-${process.pid}-${startOf(process.pid)}-${random}`
  mine.add(name)
  return name
}

export const releaseName = (name: string): void => void mine.delete(name)

export const isWorkName = (name: string): boolean => NAME.test(name)

/**
 * Whether a folder was made by our user, or lies where nobody else can make one: in a shared folder such as /tmp, others
 * choose names as they like. @throws errors of the file system as they are
 */
export async function isOurs(path: string): Promise<boolean> {
  const user = process.geteuid?.()
  if (user === undefined || (await lstat(path)).uid === user) return true
  const parent = await lstat(dirname(path))
  return (parent.uid === user || parent.uid === 0) && (parent.mode & 0o022) === 0
}

/** Whether the folder at `path` is abandoned: its maker has ended, or the machine was restarted. */
export function isAbandoned(name: string, path: string, clock: Pick<Clock, 'now'> = systemClock): boolean {
  const [, atBoot, namespace, pid, start] = NAME.exec(name) ?? []
  if (pid === undefined || mine.has(name)) return false
  if (atBoot !== boot()) return true
  if (namespace !== processNamespace()) return statSync(path).mtimeMs < clock.now() - FOREIGN_GRACE_MS
  if (Number(pid) === process.pid) return true
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true
  }
  return startOf(Number(pid)) !== start
}
