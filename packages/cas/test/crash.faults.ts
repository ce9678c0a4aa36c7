import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type CasErrorCode, openDiskStore } from '@svc/cas'
import { collect, seededBytes } from '@svc/cas-testsuite'
import { describe, expect, test } from 'vitest'
import { describeKills } from './kill-sweep.ts'
import { temporaryFolder } from './temporary-root.ts'

const required = process.env.SVC_REQUIRE_INTEROP === '1'
const KILL_CHILD = fileURLToPath(new URL('./kill-child.ts', import.meta.url))
const FULL_DISK_CHILD = fileURLToPath(new URL('./full-disk-child.ts', import.meta.url))
const NO_SPACE: CasErrorCode = 'E_NO_SPACE'
const mountsWork =
  spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' }).status === 0

function lines(child: ChildProcess): { text: string } {
  const seen = { text: '' }
  child.stdout?.on('data', (chunk: Buffer) => (seen.text += chunk.toString()))
  return seen
}
const ended = (child: ChildProcess): Promise<number | null> => new Promise((resolve) => child.on('close', resolve))
const acknowledged = (text: string): string[] =>
  [...text.matchAll(/^ack (sha256:[0-9a-f]{64})$/gm)].map(([, digest]) => digest as string)

test('60 kills at random moments of parallel ingests lose nothing that was acknowledged', async () => {
  const folder = await temporaryFolder()
  const root = `${folder.path}/store`
  writeFileSync(`${folder.path}/source`, seededBytes(700_000, 1))
  const promised = new Set<string>()
  let underWay = 0
  for (let round = 0; round < 60; round++) {
    const args = ['--conditions=svc-source', KILL_CHILD, root, String(1 + round * 10_000), `${folder.path}/source`]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const seen = lines(child)
    const end = ended(child)
    await new Promise<void>((resolve) => {
      child.stdout?.on('data', () => acknowledged(seen.text).length > 0 && resolve())
      child.on('close', () => resolve())
    })
    // the moment is the test's subject: whatever is under way then.
    const timer = setTimeout(() => child.kill('SIGKILL'), Math.random() * 400)
    expect(await end).toBe(null)
    clearTimeout(timer)
    const acks = acknowledged(seen.text)
    expect(acks.length).toBeGreaterThan(0)
    for (const digest of acks) promised.add(digest)
    if (readdirSync(`${root}/incoming`).length > 0) underWay++
    const store = await openDiskStore({ root })
    expect(readdirSync(`${root}/incoming`)).toEqual([])
    const present = new Set<string>()
    for (const { digest } of await collect(store.list())) {
      present.add(digest)
      expect(
        `sha256:${createHash('sha256')
          .update(readFileSync(store.blobPath(digest)))
          .digest('hex')}`
      ).toBe(digest)
    }
    expect([...promised].filter((digest) => !present.has(digest))).toEqual([])
    await store.close()
  }
  expect(underWay).toBeGreaterThan(0)
  await folder.dispose()
})

describe.skipIf(!mountsWork && !required)('a full disk', () => {
  test('at each phase is E_NO_SPACE; existing blobs stay, and freed space is used', async () => {
    const folder = await temporaryFolder()
    mkdirSync(`${folder.path}/small`)
    const script = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
    const args = ['-rm', 'sh', '-c', script, 'sh', `${folder.path}/small`]
    const child = spawn(
      'unshare',
      [...args, process.execPath, '--conditions=svc-source', FULL_DISK_CHILD, `${folder.path}/small`],
      {
        stdio: ['ignore', 'pipe', 'inherit']
      }
    )
    const seen = lines(child)
    expect(await ended(child)).toBe(0)
    const outcomes = JSON.parse(seen.text) as { failures: Record<string, number>; phases: number }
    expect(outcomes.phases).toBeGreaterThan(20)
    expect(Object.keys(outcomes.failures)).toEqual([NO_SPACE])
    expect(outcomes.failures[NO_SPACE]).toBeGreaterThan(5)
    await folder.dispose()
  })
})

describeKills(1)
