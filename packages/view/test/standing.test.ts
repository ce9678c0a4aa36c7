// The folder of a tool: what is ours comes and goes, and nothing else is touched.
import { createHash } from 'node:crypto'
import fs, {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseDigest } from '@svc/ref'
import { isStandingInOrder, removeStanding, type StandingModel, syncStanding, transferCost, ViewError } from '@svc/view'
import { expect, onTestFinished, test } from 'vitest'

function place(): { readonly root: string; readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-standing-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'store/blobs'), { recursive: true })
  return { root: join(folder, 'store'), path: join(folder, 'tool') }
}

function model(root: string, name: string, ...names: string[]): StandingModel {
  const files = (names.length === 0 ? [`${name}.gguf`] : names).map((each) => {
    const hex = createHash('sha256').update(each).digest('hex')
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

test('a second call changes nothing, and one without the models leaves nothing of ours', async () => {
  const { root, path } = place()
  const models = [model(root, 'a'), model(root, 'b', 'b-1.gguf', 'b-2.gguf', 'mmproj-b.gguf')]
  const request = { layout: 'llama', path, root, key: 'k' } as const
  expect(await syncStanding({ ...request, models })).toMatchObject({ made: 5, removed: 0, taken: [] })
  expect(await syncStanding({ ...request, models })).toMatchObject({ made: 0, removed: 0, entries: 5 })
  expect(isStandingInOrder(path, 'k')).toBe(true)
  expect(isStandingInOrder(path, 'other')).toBe(false)
  rmSync(join(path, 'me--a--q8_0.gguf'))
  expect(isStandingInOrder(path, 'k')).toBe(false)
  await syncStanding({ ...request, models: models.slice(0, 1) })
  expect(all(path)).toEqual(['me--a--q8_0.gguf', 'models.ini'])
  expect(existsSync(join(path, 'me--b--q8_0'))).toBe(false)
  await removeStanding(path, root)
  expect(existsSync(path)).toBe(false)
})

test('a model of several files of which all get other names stays', async () => {
  const { root, path } = place()
  const request = { layout: 'llama', path, root } as const
  await syncStanding({ ...request, key: 'k', models: [model(root, 'b', 'b-1-of-2.gguf', 'b-2-of-2.gguf')] })
  const names = ['b-1-of-3.gguf', 'b-2-of-3.gguf', 'b-3-of-3.gguf']
  await syncStanding({ ...request, key: 'l', models: [model(root, 'b', ...names)] })
  expect(all(path)).toEqual([...names.map((name) => `me--b--q8_0/${name}`), 'models.ini'])
})

test('a file, a link elsewhere and a folder of others stay, and are named', async () => {
  const { root, path } = place()
  const models = ['a', 'b', 'c'].map((name) => model(root, name))
  mkdirSync(join(path, 'me--c--q8_0.gguf'), { recursive: true })
  writeFileSync(join(path, 'me--a--q8_0.gguf'), 'of the tool')
  symlinkSync('/somewhere/else', join(path, 'me--b--q8_0.gguf'))
  const request = { layout: 'llama', path, root, key: 'k' } as const
  const { taken } = await syncStanding({ ...request, models })
  expect(taken.map((each) => each.slice(path.length + 1))).toEqual(
    ['a', 'b', 'c'].map((name) => `me--${name}--q8_0.gguf`)
  )
  await removeStanding(path, root)
  expect(readdirSync(path).sort()).toEqual(['a', 'b', 'c'].map((name) => `me--${name}--q8_0.gguf`))
  expect(readFileSync(join(path, 'me--a--q8_0.gguf'), 'utf8')).toBe('of the tool')
})

test('without a record, or with one that leads elsewhere, only links into the store are ours', async () => {
  const { root, path } = place()
  const request = { layout: 'llama', path, root, key: 'k' } as const
  const outside = join(path, '../outside.txt')
  await syncStanding({ ...request, models: [model(root, 'a')] })
  writeFileSync(outside, 'x')
  const mark = `T${createHash('sha256').update('x').digest('hex')}`
  const record = { layout: 'llama', entries: { '../outside.txt': [mark], [outside]: [mark] }, folders: ['..'] }
  for (const text of ['no JSON', '{"layout":"llama"}', JSON.stringify(record)]) {
    writeFileSync(join(path, '.svc/standing.json'), text)
    writeFileSync(join(root, 'blobs/new'), 'new')
    const renewed = { ...model(root, 'a'), files: [{ ...model(root, 'a').files[0]!, path: join(root, 'blobs/new') }] }
    await syncStanding({ ...request, models: [renewed] })
    expect(readFileSync(join(path, 'me--a--q8_0.gguf'), 'utf8'), text).toBe('new')
    await syncStanding({ ...request, models: [model(root, 'a')] })
  }
  expect(readFileSync(outside, 'utf8')).toBe('x')
})

const COPIES = { layout: 'lmstudio', key: 'k', copy: true } as const
const placeOf = (path: string, name: string): string => join(path, `me/${name}/${name}.gguf`)

test('copies are files of their own, read-only, made once, and what a tool rewrites is its own from then on', async () => {
  const { root, path } = place()
  const models = ['a', 'b'].map((name) => model(root, name))
  const request = { ...COPIES, path, root }
  const copied: number[] = []
  const made = await syncStanding({ ...request, models }, { onCopied: (bytes) => copied.push(bytes) })
  expect(made).toMatchObject({ made: 2, removed: 0, taken: [] })
  expect(copied).toEqual([6, 6])
  const stats = lstatSync(placeOf(path, 'a'))
  expect([stats.isFile(), stats.mode & 0o222]).toEqual([true, 0])
  rmSync(join(root, 'blobs'), { recursive: true })
  expect(readFileSync(placeOf(path, 'a'), 'utf8')).toBe('a.gguf')
  expect(await syncStanding({ ...request, models })).toMatchObject({ made: 0, removed: 0, entries: 2 })
  expect(isStandingInOrder(path, 'k')).toBe(true)
  chmodSync(placeOf(path, 'a'), 0o644)
  writeFileSync(placeOf(path, 'a'), 'A.gguf')
  expect(isStandingInOrder(path, 'k')).toBe(false)
  expect((await syncStanding({ ...request, models })).taken).toEqual([placeOf(path, 'a')])
  await removeStanding(path, root)
  expect(all(path)).toEqual(['me/a/a.gguf'])
  expect(readFileSync(placeOf(path, 'a'), 'utf8')).toBe('A.gguf')
})

test('a folder changes from links to copies and back, and says what the copies take', async () => {
  const { root, path } = place()
  const models = [model(root, 'a'), model(root, 'b', 'b-1.gguf', 'b-2.gguf')]
  const request = { ...COPIES, path, root, models }
  const sharesBlocks = (await transferCost(models[0]!.files[0]!.path, root)).by === 'reflink'
  for (const copy of [false, true, false]) {
    const { copiedBytes } = await syncStanding({ ...request, copy })
    expect(copiedBytes).toBe(copy && !sharesBlocks ? 6 + 8 + 8 : 0)
    expect(lstatSync(placeOf(path, 'a')).isSymbolicLink()).toBe(!copy)
    expect(lstatSync(join(path, 'me/b-q8_0/b-2.gguf')).isSymbolicLink()).toBe(!copy)
  }
})

test('a copy is verified: wrong bytes get no name, keep no other model out, and are read once until they change', async () => {
  const { root, path } = place()
  const models = ['a', 'b'].map((name) => model(root, name))
  const [damaged] = models[0]!.files
  writeFileSync(damaged!.path, 'A.gguf')
  const read: number[] = []
  const sync = () => syncStanding({ ...COPIES, path, root, models }, { onCopied: (bytes) => read.push(bytes) })
  const { failed } = await sync()
  expect(failed).toMatch(/^not all of me\/a:q8_0 is shown: .*contains the bytes of sha256:/)
  expect(all(path)).toEqual(['me/b/b.gguf'])
  expect(existsSync(join(path, '.svc/drafts'))).toBe(false)
  expect(read).toEqual([6, 6])
  expect(await sync()).toMatchObject({ made: 0, removed: 0, failed })
  expect(read).toEqual([6, 6])
  expect(isStandingInOrder(path, 'k')).toBe(false)
  rmSync(damaged!.path)
  expect((await sync()).failed).toContain(`${damaged!.path} cannot be read`)
  writeFileSync(damaged!.path, 'a.gguf')
  expect(await sync()).toMatchObject({ made: 1, entries: 2, failed: undefined })
  expect(isStandingInOrder(path, 'k')).toBe(true)
})

test('a source that goes while it is copied concerns its model, whose other copies stay', async () => {
  const { root, path } = place()
  const models = [model(root, 'a'), model(root, 'b', 'b-1.gguf', 'b-2.gguf'), model(root, 'c')]
  const onCopied = (): void => rmSync(models[1]!.files[1]!.path, { force: true })
  const { failed } = await syncStanding({ ...COPIES, path, root, models }, { onCopied })
  expect(failed).toContain('me/b:q8_0')
  expect(all(path)).toEqual(['me/a/a.gguf', 'me/c/c.gguf'])
})

test('what others put there while copies are made stays, and is named', async () => {
  const { root, path } = place()
  const split = model(root, 'b', 'b-1.gguf', 'b-2.gguf')
  const request = { ...COPIES, path, root }
  await syncStanding({ ...request, models: [split] })
  const group = join(path, 'me/b-q8_0')
  rmSync(join(group, 'b-2.gguf'))
  const onCopied = (): void => {
    if (existsSync(join(path, 'me/a'))) return
    mkdirSync(join(path, 'me/a'))
    for (const place of [placeOf(path, 'a'), join(group, 'own.gguf')]) writeFileSync(place, 'of the tool')
  }
  const { taken } = await syncStanding({ ...request, models: [split, model(root, 'a')] }, { onCopied })
  expect(taken).toEqual([placeOf(path, 'a')])
  for (const place of [placeOf(path, 'a'), join(group, 'own.gguf')])
    expect(readFileSync(place, 'utf8')).toBe('of the tool')
  expect(readdirSync(group).sort()).toEqual(['b-1.gguf', 'b-2.gguf', 'own.gguf'])
})

/** The file system has this much room for copies, and shares no blocks. */
function withRoom(bytes: number): void {
  const { statfsSync } = fs
  const { copyFile } = fs.promises
  fs.statfsSync = (() => ({ bavail: (1 << 20) + bytes, bsize: 1 })) as never
  fs.promises.copyFile = () => Promise.reject(Object.assign(new Error('no reflinks'), { code: 'ENOTSUP' }))
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, { statfsSync })
    Object.assign(fs.promises, { copyFile })
    syncBuiltinESMExports()
  })
}

test('copies are known by their digests: those of a store that has moved stay, also without room for others', async () => {
  const { root, path } = place()
  const models = ['a', 'b'].map((name) => model(root, name))
  await syncStanding({ ...COPIES, path, root, models })
  const moved = join(root, '../moved')
  fs.renameSync(root, moved)
  const there = [...models.map(({ name }) => model(moved, name)), model(moved, 'c', 'c-1.gguf', 'c-2.gguf')]
  withRoom(0)
  const request = { ...COPIES, path, root: moved, models: there }
  expect(await syncStanding(request)).toMatchObject({ made: 0, removed: 0, entries: 2, lacking: expect.any(String) })
  expect(isStandingInOrder(path, 'k')).toBe(false)
})

test('a model without room for one of its files keeps its others, and the copies that go make room', async () => {
  const { root, path } = place()
  const split = model(root, 'b', 'b-1.gguf', 'b-2.gguf')
  const request = { ...COPIES, path, root }
  withRoom(100)
  await syncStanding({ ...request, models: [split, model(root, 'old')] })
  rmSync(join(path, 'me/b-q8_0/b-2.gguf'))
  withRoom(0)
  const models = [split, model(root, 'old')]
  expect(await syncStanding({ ...request, models })).toMatchObject({ removed: 0, lacking: expect.any(String) })
  expect(all(path)).toEqual(['me/b-q8_0/b-1.gguf', 'me/old/old.gguf'])
  // as much as the one that goes
  const changed = [split, model(root, 'new', 'n-1.gguf')]
  let isGone = false
  const onCopied = (): void => {
    isGone = !existsSync(placeOf(path, 'old'))
  }
  expect(await syncStanding({ ...request, models: changed }, { onCopied })).toMatchObject({ made: 1, removed: 1 })
  expect(isGone).toBe(true)
  expect(all(path)).toEqual(['me/b-q8_0/b-1.gguf', 'me/new/n-1.gguf'])
})

test('a part of the folder that the tool has on another disk, behind a link, is emptied of ours', async () => {
  const { root, path } = place()
  const models = [model(root, 'a'), model(root, 'b', 'b-1.gguf', 'b-2.gguf')]
  await syncStanding({ layout: 'llama', path, root, key: 'k', models })
  const group = join(path, 'me--b--q8_0')
  const moved = join(root, '../another')
  fs.renameSync(group, moved)
  symlinkSync(moved, group)
  const { renameSync } = fs
  fs.renameSync = (from, to) => {
    if (`${from}`.startsWith(`${group}/`)) throw Object.assign(new Error('another device'), { code: 'EXDEV' })
    renameSync(from, to)
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, { renameSync })
    syncBuiltinESMExports()
  })
  await removeStanding(path, root)
  expect(readdirSync(moved)).toEqual([])
  expect(readdirSync(path)).toEqual(['me--b--q8_0'])
})

test('a small file that cannot be read is left out of a hub cache, and told; the rest of its model stays', async () => {
  const { root, path } = place()
  const [broken, other] = [model(root, 'a', 'a.gguf', 'config.json'), model(root, 'b')]
  const request = { layout: 'hf', path, root, key: 'k' } as const
  const config = broken.files[1]!.path
  const { readFileSync: read } = fs
  let reads = 0
  fs.readFileSync = ((file: string, ...how: never[]) => {
    if (file !== config) return read(file, ...how)
    reads++
    throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })
  }) as typeof read
  syncBuiltinESMExports()
  const restore = (): void => {
    Object.assign(fs, { readFileSync: read })
    syncBuiltinESMExports()
  }
  onTestFinished(restore)
  const models = [broken, other]
  for (let i = 0; i < 2; i++)
    expect((await syncStanding({ ...request, models })).failed).toMatch(/^not all of me\/a:q8_0 is shown: EIO/)
  expect(reads).toBe(1)
  const shown = all(path).filter((name) => name.includes('/snapshots/'))
  expect(shown.map((name) => name.slice(name.lastIndexOf('/') + 1)).sort()).toEqual(['a.gguf', 'b.gguf'])
  expect(isStandingInOrder(path, 'k')).toBe(false)
  restore()
  writeFileSync(config, 'config.json', { flag: 'r+' })
  expect((await syncStanding({ ...request, models })).failed).toBeUndefined()
  expect(all(path).some((name) => name.endsWith('/config.json'))).toBe(true)
})

test('two calls for one folder do one after the other', async () => {
  const { root, path } = place()
  const request = { ...COPIES, path, root, models: ['a', 'b'].map((name) => model(root, name)) }
  const results = await Promise.all([syncStanding(request), syncStanding(request)])
  expect(results.map(({ made, taken }) => [made, taken])).toEqual([
    [2, []],
    [0, []]
  ])
  expect(all(path)).toEqual(['me/a/a.gguf', 'me/b/b.gguf'])
})

test('a call that is given up leaves whole copies or none, and the next one does the rest', async () => {
  const { root, path } = place()
  const models = ['a', 'b', 'c'].map((name) => model(root, name))
  const request = { ...COPIES, path, root, models }
  const stop = new AbortController()
  const copying = syncStanding(request, { signal: stop.signal, onCopied: () => stop.abort() })
  await expect(copying).rejects.toMatchObject({ code: 'E_ABORTED' })
  expect(existsSync(join(path, '.svc/drafts'))).toBe(false)
  expect(await syncStanding(request)).toMatchObject({ entries: 3, taken: [] })
})

test('a hub cache of copies keeps its own links, and has the files in its snapshots where there are none', async () => {
  const { root, path } = place()
  const request = { layout: 'hf', copy: true, path, root, models: [model(root, 'a')], key: 'k' } as const
  await syncStanding(request)
  const snapshot = join(path, all(path).find((name) => name.includes('/snapshots/'))!)
  expect(realpathSync(snapshot).startsWith(join(realpathSync(path), 'models--me--a/blobs/'))).toBe(true)
  await removeStanding(path, root)
  const { symlinkSync } = fs
  fs.symlinkSync = () => {
    throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    fs.symlinkSync = symlinkSync
    syncBuiltinESMExports()
  })
  await syncStanding(request)
  expect(lstatSync(snapshot).isFile()).toBe(true)
  expect(all(path).filter((name) => name.includes('/blobs/'))).toEqual([])
  await expect(syncStanding({ ...request, copy: false, path: join(root, '../links') })).rejects.toMatchObject({
    code: 'E_NOT_LINKABLE'
  })
})

test('a commit that is here whole has a listing in the hub cache, and one of which a file is not has none', async () => {
  const { root, path } = place()
  const [q4, q8] = ['m-q4_0.gguf', 'm-q8_0.gguf'].map((name) => ({
    ...model(root, 'm', name),
    hub: { repo: 'acme/m', commit: 'c'.repeat(40), listed: ['m-q4_0.gguf', 'm-q8_0.gguf'] }
  }))
  const request = { layout: 'hf', path, root, key: 'k' } as const
  const tree = join(path, `models--acme--m/trees/${'c'.repeat(40)}.json`)
  await syncStanding({ ...request, models: [q4!] })
  expect(existsSync(tree)).toBe(false)
  await syncStanding({ ...request, models: [q4!, q8!] })
  const { format_version, files } = JSON.parse(readFileSync(tree, 'utf8'))
  expect([format_version, Object.keys(files)]).toEqual([1, ['m-q4_0.gguf', 'm-q8_0.gguf']])
  expect(files['m-q4_0.gguf']).toEqual({
    size: 11,
    blob_id: expect.stringMatching(/^[0-9a-f]{40}$/),
    lfs_sha256: q4!.files[0]!.digest!.slice(7),
    lfs_size: 11
  })
  await syncStanding({ ...request, models: [q8!] })
  expect(existsSync(tree)).toBe(false)
})

test('an error names the folder', async () => {
  const { root, path } = place()
  writeFileSync(path, 'a file where the folder should be')
  try {
    await syncStanding({ layout: 'ollama', path, root, models: [], key: '' })
    expect.fail('it should be refused')
  } catch (error) {
    expect(error).toBeInstanceOf(ViewError)
    expect((error as Error).message).toContain(path)
  }
})
