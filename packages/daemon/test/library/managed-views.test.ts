// A managed view is of an artifact and its companions: what was handed out under one name does not change under another.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { type Files, gguf, writeFiles } from '../support/models.ts'
import { held, makeView, refused, remove, viewsOf } from './view-calls.ts'

const [SIGNED, OTHER] = ['svc:///acme/signed:q8_0', 'svc:///other/name:q8_0']
const OWN = { 'generation_config.json': '{"temperature":0.6}', 'model.sig': '{}' }
const EVIL = { 'generation_config.json': '{"temperature":9}', 'custom_generate/generate.py': 'import os\n' }

/** One artifact under two names, with other companions under each. */
async function twoNames(): Promise<TestDaemon> {
  const daemon = await testDaemon()
  const add = async (as: string, files: Files): Promise<void> => {
    const path = writeFiles(temporaryFolder(), { 'm-q8_0.gguf': gguf(50_000), ...files })
    expect(await daemon.import([path], as)).toMatchObject({ state: 'done' })
  }
  await add('acme/signed', OWN)
  await add('other/name', EVIL)
  return daemon
}

const textsIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && entry.name !== '.svc-view.json' && !entry.name.endsWith('.gguf'))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')])
  )

test.each([[undefined], [60]])('a folder stays as it was handed out, held for %s s', async (holdSeconds) => {
  const daemon = await twoNames()
  const signed = await makeView(daemon, { ref: SIGNED, ...(holdSeconds && { holdSeconds }) })
  const other = await makeView(daemon, { ref: OTHER })
  expect(other.manifestDigest).toBe(signed.manifestDigest)
  expect(textsIn(signed.folder)).toEqual(OWN)
  expect(textsIn(other.folder)).toEqual(EVIL)
  // the first one has the artifact's own place, and each is the same for every caller
  expect(signed.path).toBe(join(daemon.root, 'views', signed.manifestDigest.slice(7)))
  for (const [ref, view] of [
    [SIGNED, signed],
    [OTHER, other]
  ])
    expect(await makeView(daemon, { ref })).toMatchObject({ path: view.path, made: false })
  expect(await viewsOf(daemon)).toMatchObject([
    { path: signed.path, managed: true, manifestDigest: signed.manifestDigest },
    { path: other.path, managed: true, manifestDigest: signed.manifestDigest }
  ])
  expect((await remove(daemon, other.path)).status).toBe(200)
  if (holdSeconds === undefined) expect((await remove(daemon, signed.path)).status).toBe(200)
  else expect(await refused(remove(daemon, signed.path))).toEqual([400, 'E_BAD_REQUEST'])
  expect(await held(daemon)).toEqual(holdSeconds === undefined ? [] : [signed.manifestDigest])
})

test('the same holds for a hub cache, in which each name is a repository', async () => {
  const daemon = await twoNames()
  const signed = await makeView(daemon, { ref: SIGNED, layout: 'hf' })
  const before = textsIn(signed.path)
  const other = await makeView(daemon, { ref: OTHER, layout: 'hf' })
  expect(textsIn(signed.path)).toEqual(before)
  expect(textsIn(other.folder)).toEqual(EVIL)
  expect(await makeView(daemon, { ref: SIGNED, layout: 'hf' })).toMatchObject({ path: signed.path, made: false })
})

test('a held folder is handed out while it is whole, and never made again', async () => {
  const daemon = await twoNames()
  const view = await makeView(daemon, { ref: SIGNED, holdSeconds: 60 })
  rmSync(join(view.folder, 'model.sig'))
  const left = textsIn(view.folder)
  for (const body of [{ ref: SIGNED }, { ref: SIGNED, holdSeconds: 60 }])
    expect(await refused(daemon.post('/v1/views', body))).toEqual([400, 'E_BAD_REQUEST'])
  expect(textsIn(view.folder)).toEqual(left)
  expect((await makeView(daemon, { ref: OTHER })).path).not.toBe(view.path)
})

test('a folder of an earlier version is of the companions in it: it is no other name’s, and goes with its artifact', async () => {
  const daemon = await twoNames()
  const { path } = await makeView(daemon, { ref: OTHER })
  // as earlier versions made it
  const marker = join(path, '.svc-view.json')
  const { rules: _, ...earlier } = JSON.parse(readFileSync(marker, 'utf8'))
  rmSync(marker)
  writeFileSync(marker, JSON.stringify(earlier))
  const signed = await makeView(daemon, { ref: SIGNED })
  expect(signed.path).not.toBe(path)
  expect(textsIn(path)).toEqual(EVIL)
  expect(await held(daemon)).toEqual([signed.manifestDigest])
  // by today's rules for its own name
  expect(await makeView(daemon, { ref: OTHER })).toMatchObject({ path, made: true })
  for (const name of ['acme/signed', 'other/name']) await daemon.call('DELETE', `/v1/models/${name}`)
  await daemon.finished((await daemon.post('/v1/gc', { graceSeconds: 0, views: true })).body)
  expect([existsSync(path), existsSync(signed.path), await viewsOf(daemon)]).toEqual([false, false, []])
})

test('a view that mirrors of an earlier version used is cleaned up', async () => {
  const daemon = await twoNames()
  const { path, manifestDigest } = await makeView(daemon, { ref: OTHER })
  const before = join(daemon.root, 'cache/views', manifestDigest.slice(7))
  cpSync(path, join(daemon.root, 'copy'), { recursive: true, verbatimSymlinks: true })
  const { views } = daemon.running.context
  const { body } = await daemon.open(SIGNED)
  rmSync(before, { recursive: true, force: true })
  writeFiles(join(daemon.root, 'cache/views'), { x: '' })
  renameSync(join(daemon.root, 'copy'), before)
  const files = await views.lent.lend({ manifest: body.manifestDigest, companions: body.companions.digest }, false)
  expect(files.map(({ name }) => name)).toEqual(['m-q8_0.gguf', 'generation_config.json', 'model.sig'])
  expect(readdirSync(before)).toEqual([body.companions.digest.slice(7)])
})
