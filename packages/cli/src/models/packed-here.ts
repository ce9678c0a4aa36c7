import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Terminal } from '../terminal.ts'
import { stateFolder } from '../user-state.ts'

/**
 * What this user's `svc export oci` and `svc push` wrote: an empty file for each OCI manifest, named by its SHA-256. The
 * digest covers all that the manifest says, its name included, so nobody else can make such a one.
 */
function placeOf(env: Terminal['env'], digest: string): string | undefined {
  const folder = stateFolder(env)
  const hex = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1]
  return folder === undefined || hex === undefined ? undefined : join(folder, 'packed', hex)
}

/** Remembers manifests that were just packed. If this fails, an import of them needs a name. */
export async function rememberPacked(env: Terminal['env'], digests: readonly string[]): Promise<void> {
  for (const digest of digests) {
    const place = placeOf(env, digest)
    if (place === undefined) return
    await mkdir(join(place, '..'), { recursive: true, mode: 0o700 })
      .then(() => writeFile(place, '', { mode: 0o600 }))
      .catch(() => undefined)
  }
}

/** Whether this user packed the manifest with this digest. */
export function wasPackedHere(env: Terminal['env'], digest: string): boolean {
  const place = placeOf(env, digest)
  return place !== undefined && existsSync(place)
}
