import { createHash } from 'node:crypto'
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning, processStart, thisMachine } from './flock.ts'

/** The pid and its start time (see `processStart`), after where pids mean the same. */
const OWNER = /^(\d{1,10})\.(\d{1,20}|-)-/

/** Makes a temporary folder of this process (0700), and removes those of the same name whose process was killed. */
export async function ownTemporaryFolder(name: string): Promise<string> {
  const here = createHash('sha256').update(thisMachine()).digest('hex').slice(0, 8)
  const prefix = `${name}-${here}-`
  await removeLeftovers(prefix)
  return mkdtemp(join(tmpdir(), `${prefix}${process.pid}.${processStart(process.pid) ?? '-'}-`))
}

/** What cannot be removed stays: nobody waits for it. */
async function removeLeftovers(prefix: string): Promise<void> {
  for (const entry of await readdir(tmpdir()).catch(() => [])) {
    const [, pid, startTime] = (entry.startsWith(prefix) && OWNER.exec(entry.slice(prefix.length))) || []
    if (pid === undefined || startTime === undefined || isRunning({ pid: Number(pid), startTime })) continue
    const path = join(tmpdir(), entry)
    const stat = await lstat(path).catch(() => undefined)
    // others could have others' folders removed, through links
    if (stat?.isDirectory() !== true || stat.uid !== process.geteuid?.()) continue
    await rm(path, { recursive: true, force: true }).catch(() => undefined)
  }
}
