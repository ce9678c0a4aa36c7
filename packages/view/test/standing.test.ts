// The folder of a tool: what is ours comes and goes, and nothing else is touched.
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseDigest } from '@svc/ref'
import { isStandingInOrder, removeStanding, type StandingModel, syncStanding, ViewError } from '@svc/view'
import { expect, onTestFinished, test } from 'vitest'

function place(): { readonly root: string; readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-standing-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'store/blobs'), { recursive: true })
  return { root: join(folder, 'store'), path: join(folder, 'tool') }
}

function model(root: string, name: string, ...names: string[]): StandingModel {
  const files = (names.length === 0 ? [`${name}.gguf`] : names).map((each) => {
    const hex = createHash('sha256').update(`${name} ${each}`).digest('hex')
    const path = join(root, 'blobs', hex)
    writeFileSync(path, each)
    const kind = each.startsWith('mmproj') ? 'weights.aux' : 'weights.gguf'
    const role = kind === 'weights.aux' ? 'vision-projector' : undefined
    return { name: each, kind, role, sizeBytes: each.length, digest: parseDigest(`sha256:${hex}`), path }
  })
  return { ns: 'me', name, quant: 'q8_0', manifest: files[0]!.digest, files }
}

const all = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .filter((name) => !name.startsWith('.svc/'))
    .sort()

test('a second call changes nothing, and one without the models leaves nothing of ours', () => {
  const { root, path } = place()
  const models = [model(root, 'a'), model(root, 'b', 'b-1.gguf', 'b-2.gguf', 'mmproj-b.gguf')]
  const request = { layout: 'llama', path, root, key: 'k' } as const
  expect(syncStanding({ ...request, models })).toMatchObject({ made: 5, removed: 0, taken: [] })
  expect(syncStanding({ ...request, models })).toMatchObject({ made: 0, removed: 0, entries: 5 })
  expect(isStandingInOrder(path, 'k')).toBe(true)
  expect(isStandingInOrder(path, 'other')).toBe(false)
  rmSync(join(path, 'me--a--q8_0.gguf'))
  expect(isStandingInOrder(path, 'k')).toBe(false)
  syncStanding({ ...request, models: models.slice(0, 1) })
  expect(all(path)).toEqual(['me--a--q8_0.gguf', 'models.ini'])
  expect(existsSync(join(path, 'me--b--q8_0'))).toBe(false)
  removeStanding(path, root)
  expect(existsSync(path)).toBe(false)
})

test('a file, a link elsewhere and a folder of others stay, and are named', () => {
  const { root, path } = place()
  const models = ['a', 'b', 'c'].map((name) => model(root, name))
  mkdirSync(join(path, 'me--c--q8_0.gguf'), { recursive: true })
  writeFileSync(join(path, 'me--a--q8_0.gguf'), 'of the tool')
  symlinkSync('/somewhere/else', join(path, 'me--b--q8_0.gguf'))
  const request = { layout: 'llama', path, root, key: 'k' } as const
  const { taken } = syncStanding({ ...request, models })
  expect(taken.map((each) => each.slice(path.length + 1))).toEqual(
    ['a', 'b', 'c'].map((name) => `me--${name}--q8_0.gguf`)
  )
  removeStanding(path, root)
  expect(readdirSync(path).sort()).toEqual(['a', 'b', 'c'].map((name) => `me--${name}--q8_0.gguf`))
  expect(readFileSync(join(path, 'me--a--q8_0.gguf'), 'utf8')).toBe('of the tool')
})

test('without a record, or with one that leads elsewhere, only links into the store are ours', () => {
  const { root, path } = place()
  const request = { layout: 'llama', path, root, key: 'k' } as const
  const outside = join(path, '../outside.txt')
  syncStanding({ ...request, models: [model(root, 'a')] })
  writeFileSync(outside, 'x')
  const mark = `T${createHash('sha256').update('x').digest('hex')}`
  const record = { layout: 'llama', entries: { '../outside.txt': [mark], [outside]: [mark] }, folders: ['..'] }
  for (const text of ['no JSON', '{"layout":"llama"}', JSON.stringify(record)]) {
    writeFileSync(join(path, '.svc/standing.json'), text)
    writeFileSync(join(root, 'blobs/new'), 'new')
    const renewed = { ...model(root, 'a'), files: [{ ...model(root, 'a').files[0]!, path: join(root, 'blobs/new') }] }
    syncStanding({ ...request, models: [renewed] })
    expect(readFileSync(join(path, 'me--a--q8_0.gguf'), 'utf8'), text).toBe('new')
    syncStanding({ ...request, models: [model(root, 'a')] })
  }
  expect(readFileSync(outside, 'utf8')).toBe('x')
})

test('an error names the folder', () => {
  const { root, path } = place()
  writeFileSync(path, 'a file where the folder should be')
  try {
    syncStanding({ layout: 'ollama', path, root, models: [], key: '' })
    expect.fail('it should be refused')
  } catch (error) {
    expect(error).toBeInstanceOf(ViewError)
    expect((error as Error).message).toContain(path)
  }
})
