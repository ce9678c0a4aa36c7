import { existsSync, readFileSync } from 'node:fs'
import { createClient } from '@svc/client'
import type { TestDaemon } from './support.ts'

/** The digests of the complete models that have names, with their references. */
export async function named(daemon: TestDaemon): Promise<Map<string, Set<string>>> {
  const client = createClient({ socketPath: daemon.socketPath })
  const refs = new Map<string, Set<string>>()
  for (const { ns, name, members } of (await client.models()).namespaces) {
    for (const { quant } of members) {
      const { files, missing } = await client.open(`svc:///${ns}/${name}:${quant}`)
      if (missing !== undefined) continue
      for (const { digest } of files) refs.set(digest, (refs.get(digest) ?? new Set()).add(`${ns}/${name}:${quant}`))
    }
  }
  client.close()
  return refs
}

export const isThere = (path: string, bytes: Buffer): boolean => existsSync(path) && readFileSync(path).equals(bytes)
