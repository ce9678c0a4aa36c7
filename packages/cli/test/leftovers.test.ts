// What unfinished downloads and corrupt files take: where it shows, and how it is freed.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { ok, testDaemon } from './support.ts'

test('an unfinished download and a corrupt file show in status, du and doctor, and gc --partial frees them', async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({ id: 'acme/large', files: [{ path: 'large-q8_0.gguf', content: { seed: 1, sizeBytes: 1_000_000 } }] })
  // the first bytes come, then nothing
  const fault = { kind: 'drip', stepBytes: 200_000, everyMs: 2_000 } as const
  hub.setFaults(scriptedFaults([{ stage: 'cdn', path: 'large-q8_0.gguf', fault }]))
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  const started = await daemon.svcWith(['import', 'acme/large', '--force'], { interruptAt: 'KiB' })
  const id = /svc jobs ([0-9a-f]+) --follow/.exec(started.stderr)![1]!
  const kept = await ok(daemon, 'gc', '--partial', '--dry-run')
  expect(kept).not.toContain('would free')
  await daemon.svc('cancel', id)
  writeFileSync(join(daemon.folder, 'a-q4_0.gguf'), makeGguf({}))
  await ok(daemon, 'import', 'local', 'a-q4_0.gguf', '--as', 'acme/a')
  const blob = await ok(daemon, 'path', '--blob', 'acme/a')
  rmSync(blob)
  writeFileSync(blob, 'x'.repeat(makeGguf({}).length))
  expect((await daemon.svc('verify', 'acme/a')).code).toBe(5)

  const { store } = JSON.parse(await ok(daemon, 'status', '--json'))
  expect(store).toMatchObject({ unfinished: { files: 1 }, quarantined: { files: 1, bytes: makeGguf({}).length } })
  expect(store.unfinished.bytes).toBeGreaterThan(0)
  expect(await ok(daemon, 'status')).toMatch(/^unfinished .*svc gc --partial/m)
  expect((await daemon.svc('du')).stderr).toContain('svc gc --partial')
  expect((await daemon.svc('doctor')).stdout).toContain('unfinished downloads')
  expect(await ok(daemon, 'gc', '--partial', '--dry-run')).toContain('would free')
  expect(await ok(daemon, 'gc', '--partial')).toContain('2 files')
  const after = JSON.parse(await ok(daemon, 'status', '--json')).store
  expect(after).not.toHaveProperty('unfinished')
  expect(after).not.toHaveProperty('quarantined')
})
