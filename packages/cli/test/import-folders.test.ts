// Folders of several models: what `svc import local` refuses, and what `svc adopt` makes of them.
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { expect, test } from 'vitest'
import { ok, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'
import { COMMIT, put, putHub } from './tool-caches.ts'

const refsIn = async (daemon: TestDaemon): Promise<string[]> => (await ok(daemon, 'ls', '-q')).split('\n').sort()

test('import local refuses a folder of several repositories, and names svc adopt', async () => {
  const daemon = await testDaemon()
  const models = join(daemon.folder, 'models')
  put(join(models, 'acme/Tiny-GGUF/tiny-Q4_0.gguf'), makeGguf({ seed: 1 }))
  put(join(models, 'acme/Tiny-GGUF/tiny-Q8_0.gguf'), makeGguf({ seed: 2 }))
  put(join(models, 'acme/Other-GGUF/other-Q4_0.gguf'), makeGguf({ seed: 3 }))
  put(join(models, 'two/Plain/config.json'), '{}')
  put(join(models, 'two/Plain/model.safetensors'), makeSafetensors({}))
  const refused = await daemon.svc('import', 'local', 'models', '--as', 'acme/all')
  expect(refused.code).toBe(2)
  for (const part of ['3 models', 'acme/Tiny-GGUF', `svc adopt ${models}`]) expect(refused.stderr).toContain(part)
  expect((await daemon.svc('import', 'models', '--as', 'acme/all')).code).toBe(2)
  expect(await refsIn(daemon)).toEqual([''])

  expect((await daemon.svc('adopt', models, '--yes')).code).toBe(0)
  expect(await refsIn(daemon)).toEqual([
    'acme/other-gguf:q4_0',
    'acme/tiny-gguf:q4_0',
    'acme/tiny-gguf:q8_0',
    expect.stringMatching(/^two\/plain:/)
  ])
  expect((await daemon.svc('import', 'local', 'models', '--as', 'acme/all', '--one-model')).code).toBe(0)
})

test('folders of one repository are one model', async () => {
  const daemon = await testDaemon()
  put(join(daemon.folder, 'a/BF16/big-BF16.gguf'), makeGguf({ seed: 1 }))
  put(join(daemon.folder, 'a/Q8_0/big-Q8_0.gguf'), makeGguf({ seed: 2 }))
  put(join(daemon.folder, 'a/mmproj/mmproj-big-f16.gguf'), makeGguf({ seed: 3 }))
  await ok(daemon, 'import', 'local', 'a', '--as', 'acme/a')
  put(join(daemon.folder, 'b/README.md'), '')
  put(join(daemon.folder, 'b/one/one-BF16.gguf'), makeGguf({ seed: 4 }))
  put(join(daemon.folder, 'b/two/two-Q8_0.gguf'), makeGguf({ seed: 5 }))
  await ok(daemon, 'import', 'local', 'b', '--as', 'acme/b')
  putHub(join(daemon.folder, 'hub'), 'acme/tiny', { 'tiny-q4_0.gguf': makeGguf({ seed: 6 }) })
  const cache = await daemon.svc('import', 'local', 'hub', '--as', 'acme/c')
  expect(cache).toMatchObject({ code: 2, stderr: expect.stringContaining('svc adopt') })
})

test('adopted folders of one name get names of their own, whatever their quants', async () => {
  const daemon = await testDaemon()
  put(join(daemon.folder, 'models/x/acme/Tiny/tiny-Q4_0.gguf'), makeGguf({ seed: 1 }))
  put(join(daemon.folder, 'models/y/acme/Tiny/tiny-Q8_0.gguf'), makeGguf({ seed: 2 }))
  await ok(daemon, 'adopt', 'models', '--yes')
  expect(await refsIn(daemon)).toEqual(['acme/tiny-2:q8_0', 'acme/tiny:q4_0'])
})

test('what has no digest before it is read is not known to be here', async () => {
  const daemon = await testDaemon()
  put(join(daemon.folder, 'models/acme/Tiny/tiny-Q4_0.gguf'), makeGguf({ seed: 1 }))
  await ok(daemon, 'adopt', 'models', '--yes')
  const { stdout, stderr } = await daemon.svc('adopt', 'models', '--dry-run')
  expect(stdout).toContain('not known')
  expect(stderr).toContain('not known')
  expect(stderr).not.toContain('0 B of them are here')
})

test('a link is refused with what to do instead, and adopt reads a snapshot', async () => {
  const daemon = await testDaemon()
  const hub = join(daemon.folder, 'hub')
  putHub(hub, 'Acme/Tiny', { 'tiny-q4_0.gguf': makeGguf({ seed: 1 }) })
  putHub(hub, 'Acme/Other', { 'other-q4_0.gguf': makeGguf({ seed: 2 }) })
  const snapshot = join(hub, 'models--Acme--Tiny/snapshots', COMMIT)
  for (const path of [snapshot, join(snapshot, 'tiny-q4_0.gguf')]) {
    const refused = await daemon.svc('import', 'local', path, '--as', 'acme/tiny')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`svc adopt ${snapshot} `) })
  }
  await ok(daemon, 'adopt', snapshot, '--yes')
  expect(await refsIn(daemon)).toEqual(['acme/tiny:q4_0'])
  await ok(daemon, 'adopt', join(hub, 'models--Acme--Other'), '--yes')
  expect(await refsIn(daemon)).toEqual(['acme/other:q4_0', 'acme/tiny:q4_0'])

  put(join(daemon.folder, 'real/mine-q4_0.gguf'), makeGguf({ seed: 3 }))
  symlinkSync('real/mine-q4_0.gguf', join(daemon.folder, 'link.gguf'))
  const linked = await daemon.svc('import', 'local', 'link.gguf', '--as', 'acme/mine')
  expect(linked.stderr).toContain(`svc import local ${join(daemon.folder, 'real/mine-q4_0.gguf')}`)
  // the contract's own code
  const json = await daemon.svc('import', 'local', 'link.gguf', '--as', 'acme/mine', '--json')
  expect(JSON.parse(json.stderr).error.code).toBe('E_SOURCE_NOT_REGULAR')
})

test('adopting what does not exist is an error', async () => {
  const daemon = await testDaemon()
  expect(await daemon.svc('adopt', 'nosuch')).toMatchObject({ code: 3, stderr: expect.stringContaining('ollama') })
  put(join(daemon.folder, 'a.gguf'), makeGguf({}))
  expect((await daemon.svc('adopt', 'a.gguf')).code).toBe(2)
})

test('import local says that own models are shared by default', async () => {
  const daemon = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
  put(join(daemon.folder, 'a-q4_0.gguf'), makeGguf({}))
  const { stderr } = await daemon.svc('import', 'local', 'a-q4_0.gguf', '--as', 'acme/a')
  expect(stderr).toContain('shared by default')
})
