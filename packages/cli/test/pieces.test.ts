// GGUFs that were cut to pieces for their upload, joined on the way in.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { makeGguf } from '@svc/testkit/models'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
const WHOLE = makeGguf({ seed: 1, metadata: { 'general.file_type': 7 } })
const THIRD = Math.ceil(WHOLE.length / 3)
const pieces = [0, 1, 2].map((i) => WHOLE.subarray(i * THIRD, (i + 1) * THIRD))
let hub: FakeHub
let daemon: TestDaemon

beforeAll(async () => {
  hub = await startFakeHub({})
  undo.later(() => hub.close())
  const files = pieces.map((content, i) => ({ path: `Big.Q8_0.gguf.part${i + 1}of3`, content }))
  hub.commit({ id: 'acme/pieces', files: [...files, { path: 'README.md', content: Buffer.from('#') }] })
  hub.commit({ id: 'acme/lacking', files: files.slice(1) })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
}, 60_000)
afterEach(() => hub.setFaults(undefined))
afterAll(undo.all)

it('pieces at the hub become one file, under the name that the whole would have', async () => {
  const plan = JSON.parse(await ok(daemon, 'import', 'hf', 'acme/pieces', '--dry-run', '--json'))
  expect(plan.artifacts).toMatchObject([{ quant: 'q8_0', bytes: WHOLE.length }])
  expect(await ok(daemon, 'import', 'hf', 'acme/pieces')).toBe('acme/pieces:q8_0')
  const path = await ok(daemon, 'path', 'acme/pieces')
  expect(path).toMatch(/\/big-q8_0\.gguf$/)
  expect(readFileSync(path).equals(WHOLE)).toBe(true)
  expect(JSON.parse(await ok(daemon, 'outdated', '--json')).models).toMatchObject([{ status: 'same' }])
})

it('a set that lacks a piece is refused', async () => {
  const ran = await daemon.svc('import', 'hf', 'acme/lacking')
  expect(ran.code).not.toBe(0)
  expect(ran.stderr).toContain('pieces of a GGUF')
})

it('each piece is compared with its hash: a wrong one is fetched again', async () => {
  const name = 'Odd.Q8_0.gguf.part2of3'
  hub.commit({
    id: 'acme/odd',
    files: pieces.map((content, i) => ({ path: `Odd.Q8_0.gguf.part${i + 1}of3`, content: Buffer.concat([content]) }))
  })
  hub.setFaults(scriptedFaults([{ stage: 'cdn', path: name, times: 1, fault: { kind: 'wrong-bytes' } }]))
  expect(await ok(daemon, 'import', 'hf', 'acme/odd')).toBe('acme/odd:q8_0')
  expect(readFileSync(await ok(daemon, 'path', 'acme/odd')).equals(WHOLE)).toBe(true)
})

it('a folder with pieces, too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pieces-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'm'))
  for (const [i, content] of pieces.entries()) writeFileSync(join(folder, 'm', `Big.gguf-split-${'abc'[i]}`), content)
  expect(await ok(daemon, 'import', 'local', join(folder, 'm'), '--as', 'me/pieces', '--private')).toBe(
    'me/pieces:q8_0'
  )
  expect(readFileSync(await ok(daemon, 'path', 'me/pieces')).equals(WHOLE)).toBe(true)
})
