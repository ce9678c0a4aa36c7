import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Memory-backed where there is such a place: these tests are about order and errors, not about the disk. */
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** A folder of its own for one test. */
export async function temporaryFolder(): Promise<{ readonly path: string; dispose(): Promise<void> }> {
  const path = await mkdtemp(join(BASE, 'svc-cas-'))
  return { path, dispose: () => rm(path, { recursive: true, force: true }) }
}

export const openDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length
