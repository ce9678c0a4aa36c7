// What `svc doctor` says of models and views, what `svc evict --force` says, and exit codes.
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { expect, test } from 'vitest'
import { ok, type TestDaemon, testDaemon, typing } from './support.ts'

async function oneModel(): Promise<TestDaemon> {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'a-q4_0.gguf'), makeGguf({}))
  await ok(daemon, 'import', 'local', 'a-q4_0.gguf', '--as', 'acme/a')
  return daemon
}

async function doctor(daemon: TestDaemon) {
  const { code, stdout } = await daemon.svc('doctor', '--json')
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly Record<string, string>[] }
  const of = (name: string) => findings.filter(({ check }) => check === name)
  return { code, models: of('models'), views: of('views') }
}

test('svc doctor tells of damaged models, of what is no model, and of links that lead nowhere', async () => {
  const daemon = await oneModel()
  await ok(daemon, 'view', 'acme/a', 'links')
  expect(await doctor(daemon)).toMatchObject({ code: 0, models: [{ level: 'ok' }], views: [] })
  const blob = await ok(daemon, 'path', '--blob', 'acme/a')
  rmSync(blob)
  writeFileSync(blob, 'x'.repeat(makeGguf({}).length))
  expect((await daemon.svc('fsck')).code).toBe(5)
  const hurt = await doctor(daemon)
  expect(hurt).toMatchObject({ code: 5, models: [{ level: 'bad' }], views: [{ level: 'warn' }] })
  expect(hurt.models[0]!.text).toContain('acme/a:q4_0')
  expect(hurt.views[0]!.text).toContain(join(daemon.folder, 'links'))

  writeFileSync(join(daemon.folder, 'b-q4_0.gguf'), 'hello')
  await ok(daemon, 'import', 'local', 'b-q4_0.gguf', '--as', 'acme/b', '--force')
  expect((await doctor(daemon)).models.map(({ text }) => text)).toEqual(
    expect.arrayContaining([expect.stringContaining('acme/b:q4_0 is no model')])
  )
})

test('svc evict --force says that nothing can bring a model back, and asks a person', async () => {
  const daemon = await oneModel()
  const asked = await daemon.svcWith(['evict', 'acme/a', '--force'], { columns: 90, stdin: typing('n') })
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('nothing can bring it back') })
  await ok(daemon, 'verify', 'acme/a')
  const forced = await daemon.svc('evict', 'acme/a', '--force')
  expect(forced).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing can bring it back') })
  expect(forced.stderr).not.toContain('svc pull')
})

test('exit codes: 3 for a quant that is not here, however it is spelled, and 6 where no web server answers', async () => {
  const daemon = await oneModel()
  for (const quant of ['zz', 'q8_0', 'Q9']) expect((await daemon.svc('path', `acme/a:${quant}`)).code).toBe(3)
  const published = await daemon.svc('publish', 'acme/a', 'www', '--url', 'http://127.0.0.1:9/')
  expect(published).toMatchObject({ code: 6, stderr: expect.stringContaining('127.0.0.1:9') })
  expect(readdirSync(join(daemon.folder, 'www'))).not.toEqual([])
})
