// `svc view REF DIR`: what is there stays, unless somebody says otherwise.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { ok, type TestDaemon, testDaemon, typing } from './support.ts'

async function twoModels(): Promise<TestDaemon> {
  const daemon = await testDaemon()
  for (const [i, name] of ['a', 'b'].entries()) {
    writeFileSync(join(daemon.folder, `${name}-q4_0.gguf`), makeGguf({ seed: i + 1 }))
    await ok(daemon, 'import', 'local', `${name}-q4_0.gguf`, '--as', `acme/${name}`)
  }
  return daemon
}

const weightsIn = (daemon: TestDaemon, folder: string): string[] =>
  readdirSync(join(daemon.folder, folder)).filter((name) => name.endsWith('.gguf'))

test('a view of another model is replaced only with --replace, or by a person who says so', async () => {
  const daemon = await twoModels()
  await ok(daemon, 'view', 'acme/a:q4_0', 'x')
  const refused = await daemon.svc('view', 'acme/b:q4_0', 'x')
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('acme/a:q4_0')
  expect(weightsIn(daemon, 'x')).toEqual(['a-q4_0.gguf'])
  const answered = (answer: string) =>
    daemon.svcWith(['view', 'acme/b:q4_0', 'x'], { columns: 80, stdin: typing(answer) })
  expect((await answered('')).code).toBe(2)
  expect(weightsIn(daemon, 'x')).toEqual(['a-q4_0.gguf'])
  expect((await answered('y')).code).toBe(0)
  expect(weightsIn(daemon, 'x')).toEqual(['b-q4_0.gguf'])
  await ok(daemon, 'view', 'acme/a:q4_0', 'x', '--replace')
  expect(weightsIn(daemon, 'x')).toEqual(['a-q4_0.gguf'])
  // another mode of the same model needs no question
  await ok(daemon, 'view', 'acme/a:q4_0', 'x', '--copy')
})

test('an empty folder is accepted, and the current one is told how to show it', async () => {
  const daemon = await twoModels()
  mkdirSync(join(daemon.folder, 'empty'))
  await ok(daemon, 'view', 'acme/a:q4_0', 'empty')
  expect(weightsIn(daemon, 'empty')).toEqual(['a-q4_0.gguf'])
  const here = join(daemon.folder, 'here')
  mkdirSync(here)
  const ran = await daemon.svcWith(['view', 'acme/a:q4_0', '.'], { cwd: here })
  expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining('cd .') })
  mkdirSync(join(daemon.folder, 'mine'))
  writeFileSync(join(daemon.folder, 'mine', 'x'), '')
  expect((await daemon.svc('view', 'acme/a:q4_0', 'mine')).code).toBe(2)
})

test("a view in the hub's layout has the publisher's file names, and an earlier one is made again", async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const id = 'Acme/Model-7B-GGUF'
  const paths = ['Model-7B-Q4_K_M.gguf', 'Model-7B-Q8_0.gguf']
  const commit = hub.commit({ id, files: paths.map((path, i) => ({ path, content: makeGguf({ seed: i + 1 }) })) })
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  await ok(daemon, 'import', 'hf', id, '--all')
  for (const quant of ['q4_k_m', 'q8_0'])
    await ok(daemon, 'view', `acme/model-7b-gguf:${quant}`, 'cache', '--layout', 'hf')
  const snapshot = join(daemon.folder, 'cache/models--Acme--Model-7B-GGUF/snapshots', commit)
  expect(readdirSync(snapshot).sort()).toEqual(paths)
  for (const [i, path] of paths.entries()) expect(readFileSync(join(snapshot, path))).toEqual(makeGguf({ seed: i + 1 }))
  const again = JSON.parse(await ok(daemon, 'view', 'acme/model-7b-gguf:q8_0', 'cache', '--layout', 'hf', '--json'))
  expect(again).toMatchObject({
    made: false,
    files: expect.arrayContaining([expect.objectContaining({ name: 'model-7b-q8_0.gguf' })])
  })
})

test('svc path of a whole GGUF answers where no folder can be made', async () => {
  const daemon = await twoModels()
  rmSync(join(daemon.root, 'views'), { recursive: true, force: true })
  // as little room for a folder as on a full disk
  writeFileSync(join(daemon.root, 'views'), '')
  const ran = await daemon.svc('path', 'acme/a:q4_0')
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('/blobs/sha256/') })
  expect(readFileSync(ran.stdout.trim())).toEqual(makeGguf({ seed: 1 }))
  expect((await daemon.svc('path', '--dir', 'acme/a:q4_0')).code).not.toBe(0)
})
