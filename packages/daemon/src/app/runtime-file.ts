import { readFile, unlink } from 'node:fs/promises'
import type { SwarmStatus } from '@svc/client/protocol'
import { nodeFilePort, replaceFile } from '@svc/internal-files'
import type { SwarmAddresses } from '@svc/sharing/parts'
import type { MirrorAddresses } from './mirrors.ts'

/** `runtime.json` (0600) next to the socket (spec swarm.11): which process listens, and on which ports. */
export interface RuntimeFacts extends SwarmAddresses, MirrorAddresses {
  readonly pid: number
  readonly version: string
  readonly root: string
  /** The id of the store at `root`. */
  readonly storeId: string
  readonly socket: string
  readonly startedAt: string
  /** `starting` until the socket responds. */
  readonly state: 'starting' | 'running'
  /** `host:port` of metrics and health checks. */
  readonly metricsAddress?: string
  /** While starting: the progress of re-hashing stored bytes. */
  readonly verifying?: SwarmStatus['verifying']
}

export const writeRuntimeFile = (path: string, facts: RuntimeFacts): Promise<void> =>
  replaceFile(nodeFilePort, path, Buffer.from(`${JSON.stringify(facts, null, 2)}\n`))

/** Removes the file if it still belongs to this process. */
export async function removeRuntimeFile(path: string): Promise<void> {
  try {
    const { pid } = JSON.parse(await readFile(path, 'utf8')) as { pid?: unknown }
    if (pid === process.pid) await unlink(path)
  } catch {
    // absent, or another process's: nothing to remove
  }
}
