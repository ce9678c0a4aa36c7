import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Timed } from './command.ts'
import { writeSafetensors } from './model-files.ts'
import type { Bench } from './row.ts'
import type { Scratch } from './scratch.ts'

const WARM_UP_BYTES = 12 << 20

/** A folder to warm a daemon up with: one small model, other than those that are timed. */
export async function warmUpFolder(scratch: Scratch): Promise<string> {
  const folder = await scratch.folder()
  writeSafetensors(folder, 'model.safetensors', WARM_UP_BYTES)
  return folder
}

/** What is asked of a daemon: a path of its interface, and a body. */
export type JobRequest = readonly [path: string, body: object]

/** Imports a folder through a fresh daemon, warmed up by one small import; or times another `job`. Its store lies in `scratch` and is gone afterwards. */
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
