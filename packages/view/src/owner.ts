import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { hostname } from 'node:os'

/** Prefix of the folders that views are made in, beside their place. */
const PREFIX = '.svc-view-'
const NAME = /^\.svc-view-([0-9a-f]{8})-([0-9a-f]{8})-(\d{1,10})-(\d{1,20})-[0-9a-f]{12}$/
/** How long a maker in another container may take before its folder counts as abandoned. */
const FOREIGN_GRACE_MS = 24 * 3_600_000

function readOr(read: () => string, otherwise: string): string {
  try {
    return read()
  } catch {
    return otherwise
  }
}
const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Of this run of the machine, and of this container: process numbers mean something only within them. */
const boot = (): string => short(readOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'), hostname()))
const processNamespace = (): string => short(readOr(() => readlinkSync('/proc/self/ns/pid'), ''))

/** Start of a process in clock ticks: its number alone is given out again. `0` where there is no /proc. */
function startOf(pid: number): string {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, 'latin1'), '')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '0'
}

/** Folders that this process is working in: its own number says nothing about those. */
const mine = new Set<string>()

/** A new name for a working folder, which tells who made it. Release it with {@link releaseName}. */
export function takeName(): string {
  const random = randomBytes(6).toString('hex')
  const name = `${PREFIX}${boot()}-${processNamespace()}-${process.pid}-${startOf(process.pid)}-${random}`
  mine.add(name)
  return name
}

export const releaseName = (name: string): void => void mine.delete(name)

export const isWorkName = (name: string): boolean => NAME.test(name)

/** Whether nobody works in the folder at `path` any more: its maker ended, or the machine was started anew. */
export function isAbandoned(name: string, path: string): boolean {
  const [, atBoot, namespace, pid, start] = NAME.exec(name) ?? []
  if (pid === undefined || mine.has(name)) return false
  if (atBoot !== boot()) return true
  if (namespace !== processNamespace()) return statSync(path).mtimeMs < Date.now() - FOREIGN_GRACE_MS
  if (Number(pid) === process.pid) return true
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true
  }
  return startOf(Number(pid)) !== start
}
