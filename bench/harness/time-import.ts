import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Timed } from './command.ts'
import { writeSafetensors } from './model-files.ts'
import type { Bench } from './row.ts'
import type { Scratch } from './scratch.ts'

const WARM_UP_BYTES = 12 << 20

/** Creates a folder with a small model to warm up a daemon, different from the measured ones. */
export async function warmUpFolder(scratch: Scratch): Promise<string> {
  const folder = await scratch.folder()
  writeSafetensors(folder, 'model.safetensors', WARM_UP_BYTES)
  return folder
}

/** A request that starts a job: API path and body. */
export type JobRequest = readonly [path: string, body: object]

/** Times an import of a folder, or another `job`, by a fresh daemon, after one small warm-up import. Its store is in `scratch` and removed afterwards. */
export async function timeImport(
  daemons: Bench['daemons'],
  scratch: Scratch,
  {
    warmUp,
    folder,
    job: [path, body] = ['/v1/import/local', { paths: [folder], as: 'bench/model' }]
  }: { readonly warmUp: string; readonly folder: string; readonly job?: JobRequest | undefined }
): Promise<Timed> {
  const place = await scratch.folder()
  mkdirSync(join(place, 'root'), { mode: 0o700 })
  const daemon = await daemons.start({ root: join(place, 'root') })
  try {
    await daemon.api.job('/v1/import/local', { paths: [warmUp], as: 'bench/warm' })
    const before = daemon.cpuSeconds()
    const { seconds } = await daemon.api.job(path, body)
    return { seconds, cpuSeconds: daemon.cpuSeconds() - before }
  } finally {
    await daemon.stop()
    await scratch.drop(place)
  }
}
