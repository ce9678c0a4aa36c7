// Weights that no runtime can load: refused by the command line, marked and not shared where the caller keeps them.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { ok, testDaemon } from './support.ts'

const POINTER = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 123\n`
const whole = makeGguf({})
const MALFORMED: readonly (readonly [string, string | Buffer])[] = [
  ['text', 'hello\n'],
  ['a file cut short', whole.subarray(0, whole.length - 64)],
  ['an LFS pointer', POINTER]
]

test.each(MALFORMED)('%s is no model: svc import refuses it without --force', async (_, bytes) => {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'x-q4_0.gguf'), bytes)
  const refused = await daemon.svc('import', 'local', 'x-q4_0.gguf', '--as', 'acme/x')
  expect(refused.code).toBe(1)
  for (const part of ['x-q4_0.gguf', '--force']) expect(refused.stderr).toContain(part)
  expect(await ok(daemon, 'ls', '-q')).toBe('')

  await ok(daemon, 'import', 'local', 'x-q4_0.gguf', '--as', 'acme/x', '--force')
  for (const command of [['ls'], ['show', 'acme/x:q4_0']]) expect(await ok(daemon, ...command)).toContain('NOT A MODEL')
  const fsck = await ok(daemon, 'fsck')
  expect(fsck).toContain('acme/x:q4_0 is no model')
  expect(fsck).not.toContain('all good')
  const why = JSON.parse(await ok(daemon, 'why', 'acme/x:q4_0', '--json')).models[0]
  expect(why.malformed).toEqual(['x-q4_0.gguf'])
  for (const { given, withheld } of why.doors)
    expect({ given, fact: withheld.fact }).toEqual({ given: false, fact: 'malformed' })
  // its owner may say otherwise
  await ok(daemon, 'private', 'acme/x:q4_0', '--off')
  expect(JSON.parse(await ok(daemon, 'why', 'acme/x:q4_0', '--json')).models[0].doors[0].given).toBe(true)
})

test('svc pull, adopt and upgrade refuse them too; a whole model beside it stays', async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const files = (content: string | Buffer) => [{ path: 'a-q8_0.gguf', content: Buffer.from(content) }]
  hub.commit({ id: 'acme/bad', files: files('hello') })
  hub.commit({ id: 'acme/good', files: files(whole) })
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  expect((await daemon.svc('pull', 'acme/bad:q8_0')).code).toBe(1)
  await ok(daemon, 'pull', 'acme/good:q8_0')
  const before = await ok(daemon, 'resolve', 'acme/good:q8_0', '-q')
  hub.commit({ id: 'acme/good', files: files('hello') })
  expect((await daemon.svc('upgrade', 'acme/good')).code).not.toBe(0)
  expect(await ok(daemon, 'resolve', 'acme/good:q8_0', '-q')).toBe(before)
  await ok(daemon, 'pull', 'acme/bad:q8_0', '--force')
  writeFileSync(join(daemon.folder, 'y-q4_0.gguf'), POINTER)
  expect((await daemon.svc('adopt', '.', '--yes')).code).not.toBe(0)
})

test('the API keeps them with a warning unless it is told to refuse them', async () => {
  const daemon = await testDaemon()
  const path = join(daemon.folder, 'x-q4_0.gguf')
  writeFileSync(path, 'hello')
  const client = createClient({ socketPath: daemon.socketPath })
  onTestFinished(() => client.close())
  const refused = await client.waitJob(await client.importLocal({ paths: [path], as: 'acme/x', malformed: 'refuse' }))
  expect(refused).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect(refused.error).not.toHaveProperty('candidates')
  const kept = await client.waitJob(await client.importLocal({ paths: [path], as: 'acme/x' }))
  expect(kept).toMatchObject({
    state: 'done',
    result: { warnings: expect.arrayContaining([expect.stringContaining('x-q4_0.gguf')]) }
  })
  expect((await client.models()).namespaces[0]!.members[0]).toMatchObject({
    malformed: ['x-q4_0.gguf'],
    withheld: { fact: 'malformed' }
  })
})
