import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FakeHub } from '@svc/testkit/fake-hub'
import { SVCD } from '@svc/testkit/programs'
import { onTestFinished } from 'vitest'

/** The daemon as a process of its own, on Node alone. */
export async function spawnDaemon(root: string, socketPath: string, fake: FakeHub): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    [...SVCD, '--root', join(root, 'store'), '--config', join(root, 'config.toml')],
    {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        HOME: root,
        SVC_SOCKET: socketPath,
        HF_ENDPOINT: fake.endpoint,
        SVC_HF_TOKEN: 'hf_good'
      },
      stdio: ['ignore', 'ignore', 'pipe']
    }
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    log += String(chunk)
  })
  while (!log.includes('listening')) {
    if (child.exitCode !== null) throw new Error(`the daemon ended: ${log}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return child
}

/** What the journal of the partial blob of a file of this size vouches for. */
export async function durableBytes(root: string, fileBytes: number): Promise<number> {
  const incoming = join(root, 'store', 'incoming')
  let bytes = 0
  for (const name of await readdir(incoming)) {
    if (!name.endsWith('.json')) continue
    const { sizeBytes, ranges } = JSON.parse(await readFile(join(incoming, name), 'utf8')) as {
      sizeBytes: number
      ranges: [number, number][]
    }
    if (sizeBytes === fileBytes) for (const [start, end] of ranges) bytes += end - start
  }
  return bytes
}
