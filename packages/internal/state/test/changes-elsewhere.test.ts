import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { ChangesElsewhere } from '../src/changes-elsewhere.ts'
import { temporaryFolder } from './temporary-folder.ts'

function store(): { readonly root: string; add(namespace: string): void } {
  const root = temporaryFolder()
  for (const folder of ['artifacts', 'repos']) mkdirSync(join(root, 'state', folder), { recursive: true })
  return { root, add: (namespace) => mkdirSync(join(root, 'state/repos', namespace)) }
}

test('who asks again at once does not have all folders looked at again', async () => {
  const { root, add } = store()
  const clock = new VirtualClock()
  const changes = new ChangesElsewhere(root, clock)
  const before = changes.revision
  add('acme')
  expect(changes.revision).toBe(before)
  await clock.advance(5)
  expect(changes.revision).toBeGreaterThan(before)
})

test('looks that take long are rarer, but not rarer than four in a second', () => {
  const { root, add } = store()
  let atMs = 0
  const slow = { now: () => 0, monotonic: () => (atMs += 20) }
  const changes = new ChangesElsewhere(root, slow)
  const before = changes.revision
  add('acme')
  for (const seenAtMs = atMs; atMs < seenAtMs + 180; ) expect(changes.revision).toBe(before)
  for (const seenAtMs = atMs; atMs < seenAtMs + 100; ) changes.revision
  expect(changes.revision).toBeGreaterThan(before)
})

test('a disk that is away is a change, and its return is one', async () => {
  const { root } = store()
  const clock = new VirtualClock()
  const changes = new ChangesElsewhere(root, clock)
  const seen = [changes.revision]
  const look = async (): Promise<void> => {
    await clock.advance(1_000)
    seen.push(changes.revision)
  }
  renameSync(root, `${root}-away`)
  await look()
  await look()
  renameSync(`${root}-away`, root)
  await look()
  expect(seen[1]).toBeGreaterThan(seen[0]!)
  expect(seen[2]).toBe(seen[1])
  expect(seen[3]).toBeGreaterThan(seen[2]!)
})
