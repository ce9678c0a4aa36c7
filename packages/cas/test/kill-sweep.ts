import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openDiskStore } from '@svc/cas'
import { collect, seededBytes } from '@svc/cas-testsuite'
import { parseSystemCalls } from '@svc/testkit/system-calls'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

const required = process.env.SVC_REQUIRE_INTEROP === '1'
const straceWorks =
  spawnSync('strace', ['-f', '-e', 'inject=fsync:error=EIO', 'true'], { stdio: 'ignore' }).status === 0
const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url))

interface Run {
  readonly stdout: string
  readonly killed: boolean
}

function run(strace: readonly string[], root: string): Promise<Run> {
  return new Promise((resolve, reject) => {
    const args = ['-f', ...strace, process.execPath, '--conditions=svc-source', CHILD, root]
    const child = spawn('strace', args, {
      stdio: ['ignore', 'pipe', 'ignore']
    })
    let stdout = ''
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.on('error', reject)
    child.on('close', () => resolve({ stdout, killed: !stdout.includes('end') }))
  })
}

const acknowledged = (stdout: string): string[] =>
  [...stdout.matchAll(/^ack (sha256:[0-9a-f]{64})$/gm)].map(([, digest]) => digest as string)

/** A start after the crash: every name holds its bytes, what was acknowledged is there, nothing else is left. */
async function checkAfterCrash(root: string, { stdout }: Run): Promise<void> {
  const store = await openDiskStore({ root })
  const present = (await collect(store.list())).map(({ digest }) => digest)
  for (const digest of present) {
    const path = store.blobPath(digest)
    expect(`sha256:${createHash('sha256').update(readFileSync(path)).digest('hex')}`).toBe(digest)
    expect(statSync(path).mode & 0o777).toBe(0o444)
  }
  for (const digest of acknowledged(stdout)) expect(present).toContain(digest)
  expect(readdirSync(`${root}/quarantine`)).toEqual([])
  const left = readdirSync(`${root}/incoming`)
  expect(left.length === 0 || left.length === 2).toBe(true)
  const bytes = seededBytes(100_000, 4)
  const partial = await store.partial({ key: 'k', sizeBytes: bytes.length })
  // at the kill the journal of the first half was there, or none; the next checkpoint may have come too.
  if (stdout.includes('checkpoint') && acknowledged(stdout).length === 3 && present.length === 3) {
    expect(partial.ranges()[0]?.[0]).toBe(0)
  }
  for (const [start, end] of partial.ranges()) {
    const got = new Uint8Array(end - start)
    await partial.read(got, start)
    expect(Buffer.compare(got, bytes.subarray(start, end))).toBe(0)
  }
  await partial.discard()
  expect(readdirSync(`${root}/incoming`)).toEqual([])
  await store.close()
}

/** Declares the tests: a kill at every `stride`-th of the system calls that matter. */
export function describeKills(stride: number): void {
  describe.skipIf(!straceWorks && !required)('kill -9', () => {
    // in a new folder: while the store is made. In a made one, where the first call is the lock's: while blobs come in.
    const points: readonly { readonly call: string; readonly when: number; readonly fresh: boolean }[] = [
      ...[1, 3, 130].map((when) => ({ call: 'mkdir', when, fresh: true })),
      ...[2, 4, 5].map((when) => ({ call: 'fsync', when, fresh: true })),
      { call: 'rename', when: 1, fresh: true },
      ...[1, 2, 3, 4, 5, 6, 7, 8].map((when) => ({ call: 'fsync', when, fresh: false })),
      ...[1, 2, 3, 4].map((when) => ({ call: 'link', when, fresh: false })),
      ...[1, 2, 3, 4].map((when) => ({ call: 'unlink', when, fresh: false })),
      ...[2, 3, 4].map((when) => ({ call: 'fchmod', when, fresh: false })),
      ...[1, 2].map((when) => ({ call: 'pwrite64', when, fresh: false })),
      { call: 'rename', when: 1, fresh: false },
      { call: 'fdatasync', when: 1, fresh: false }
    ]

    // two at a time: most of the time goes into starting the child.
    for (const half of [0, 1]) {
      test.concurrent(`at a system call leaves whole blobs and nothing else (${half + 1} of 2)`, {
        timeout: 60_000
      }, async ({ expect }) => {
        const folder = await temporaryFolder()
        let killed = 0
        const mine = points.filter((_, i) => i % stride === 0).filter((_, i) => i % 2 === half)
        for (const { call, when, fresh } of mine) {
          const root = `${folder.path}/${call}-${when}-${fresh}`
          if (!fresh) await (await openDiskStore({ root })).close()
          // no --seccomp-bpf: strace 6.1 miscounts `when` with it.
          const result = await run(
            ['-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:signal=KILL:when=${when}`],
            root
          )
          if (result.killed) killed++
          await checkAfterCrash(root, result)
        }
        // calls are counted by thread, and which of two threads commits is open: the last points may not be reached.
        expect(killed).toBeGreaterThan(mine.length * 0.5)
        await folder.dispose()
      })
    }
  })
}

/** Declares the test of the order of syncs, names and acknowledgements. */
export function describeOrder(): void {
  describe.skipIf(!straceWorks && !required)('order of system calls', () => {
    test('order: a file is synced before it gets its name, the folder before the acknowledgement', async () => {
      const folder = await temporaryFolder()
      const root = `${folder.path}/store`
      const log = `${folder.path}/log`
      const { stdout } = await run(
        ['--seccomp-bpf', '-y', '-s', '200', '-o', log, '-e', 'trace=fsync,fdatasync,link,write'],
        root
      )
      expect(stdout).toContain('end')
      const events = parseSystemCalls(readFileSync(log, 'utf8'))
      const blobs = acknowledged(stdout).map(
        (digest) => `${root}/blobs/sha256/${digest.slice(7, 9)}/${digest.slice(9)}`
      )
      expect(blobs.length).toBe(4)
      for (const [i, blob] of blobs.entries()) {
        const link = events.find(({ call, text }) => call === 'link' && text.includes(`"${blob}"`))
        const part = /"([^"]*\.part)"/.exec(link?.text ?? '')?.[1]
        const synced = events.find(({ call, text }) => call === 'fsync' && text.includes(`<${part}>`))
        const folderSynced = events.find(
          ({ call, text, begun }) =>
            call === 'fsync' &&
            text.includes(`<${blob.slice(0, blob.lastIndexOf('/'))}>`) &&
            begun > (link?.ended ?? Infinity)
        )
        const ack = events.find(({ call, text }) => call === 'write' && text.includes(`ack ${acknowledged(stdout)[i]}`))
        expect(synced?.ended).toBeLessThan(link?.begun ?? -1)
        expect(folderSynced?.ended).toBeLessThan(ack?.begun ?? -1)
      }
      await folder.dispose()
    })
  })
}
