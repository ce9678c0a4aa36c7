import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Memory-backed where there is such a place: these tests are about order and errors, not about the disk. */
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** A folder of its own for one test. */
export async function temporaryFolder(): Promise<{ readonly path: string; dispose(): Promise<void> }> {
  const path = await mkdtemp(join(BASE, 'svc-cas-'))
  return { path, dispose: () => rm(path, { recursive: true, force: true }) }
}

/**
 * Number of this process's descriptors in such folders. Others do not count: threads of other test files in this process end
 * when they like, and take theirs along.
 */
export async function openDescriptors(): Promise<number> {
  const names = await readdir('/proc/self/fd')
  const targets = await Promise.all(names.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return targets.filter((target) => target.startsWith(join(BASE, 'svc-cas-'))).length
}
