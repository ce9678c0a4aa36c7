import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own for one test. */
export async function temporaryFolder(): Promise<{ readonly path: string; dispose(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'svc-cas-'))
  return { path, dispose: () => rm(path, { recursive: true, force: true }) }
}

export const openDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length
