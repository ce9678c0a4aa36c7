import { readFile, unlink } from 'node:fs/promises'
import type { SwarmStatus } from '@svc/client/protocol'
import { nodeFilePort, replaceFile } from '@svc/internal-files'
import type { MirrorAddresses } from '../mirror/mirrors.ts'
import type { SwarmAddresses } from '../swarm/swarm-client.ts'

/** `runtime.json` (0600) beside the socket (spec swarm.11): who listens, and on which ports. */
export interface RuntimeFacts extends SwarmAddresses, MirrorAddresses {
  readonly pid: number
  readonly version: string
  readonly root: string
  readonly socket: string
  readonly startedAt: string
  /** `starting` before the socket answers. */
  readonly state: 'starting' | 'running'
  /** `host:port` of metrics and health checks. */
  readonly metricsAddress?: string
  /** While starting: how far the stored bytes are hashed again. */
  readonly verifying?: SwarmStatus['verifying']
}

export const writeRuntimeFile = (path: string, facts: RuntimeFacts): Promise<void> =>
  replaceFile(nodeFilePort, path, Buffer.from(`${JSON.stringify(facts, null, 2)}\n`))

/** Removes the file if it is still this process's. */
export async function removeRuntimeFile(path: string): Promise<void> {
  try {
    const { pid } = JSON.parse(await readFile(path, 'utf8')) as { pid?: unknown }
    if (pid === process.pid) await unlink(path)
  } catch {
    // gone or somebody else's: nothing of ours is left
  }
}
