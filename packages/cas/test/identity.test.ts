import * as fs from 'node:fs'
import { join } from 'node:path'
import { type BlobStore, CasError, type DiskBlobStore, type DiskStoreOptions, openDiskStore } from '@svc/cas'
import { codeOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const OTHER = '00000000-0000-4000-8000-000000000000'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let root: string
const opened: BlobStore[] = []
async function open(options: Partial<DiskStoreOptions> = {}): Promise<DiskBlobStore> {
  const store = await openDiskStore({ root, ...options })
  opened.push(store)
  return store
}
const idFile = (): string => fs.readFileSync(join(root, 'id'), 'utf8')

beforeEach(async () => {
  folder = await temporaryFolder()
  root = join(folder.path, 'store')
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
  await folder.dispose()
})

describe('the identity of a store (spec disk.21)', () => {
  test('is created with the store, never changes, and differs between stores', async () => {
    const first = await open()
    expect(first.isNew).toBe(true)
    expect(first.id).toMatch(UUID)
    expect(idFile()).toBe(`${first.id}\n`)
    expect(fs.lstatSync(join(root, 'id')).mode & 0o777).toBe(0o600)
    await first.close()
    const again = await open()
    expect([again.id, again.isNew]).toEqual([first.id, false])
    const other = await open({ root: join(folder.path, 'other') })
    expect(other.id).not.toBe(first.id)
  })

  test('is added to a store of an earlier version, which does not count as new', async () => {
    const { id } = await open()
    await opened.pop()!.close()
    fs.unlinkSync(join(root, 'id'))
    const again = await open()
    expect(again.isNew).toBe(false)
    expect(again.id).toMatch(UUID)
    expect(again.id).not.toBe(id)
  })

  test('can be set on a new store, and never replaces one that exists', async () => {
    expect((await open({ newId: OTHER })).id).toBe(OTHER)
    await opened.pop()!.close()
    expect((await open({ newId: 'ffffffff-0000-4000-8000-000000000000' })).id).toBe(OTHER)
  })

  test('that is malformed is refused and left as it is', async () => {
    await open()
    await opened.pop()!.close()
    for (const text of ['', 'x\n', `${OTHER}`, `${OTHER}\n\n`, `${OTHER.toUpperCase().replaceAll('0', 'A')}\n`]) {
      fs.writeFileSync(join(root, 'id'), text)
      expect(await codeOf(open()), JSON.stringify(text)).toBe('E_FORMAT')
      expect(idFile()).toBe(text)
    }
  })

  test('is compared with the expected one before anything is created', async () => {
    expect(await codeOf(open({ expectedId: OTHER }))).toBe('E_OTHER_STORE')
    expect(fs.existsSync(root)).toBe(false)
    fs.mkdirSync(root, { mode: 0o700 })
    expect(await codeOf(open({ expectedId: OTHER }))).toBe('E_OTHER_STORE')
    expect(fs.readdirSync(root)).toEqual([])
    const { id } = await open()
    await opened.pop()!.close()
    const refusal = await open({ expectedId: OTHER }).catch((error: unknown) => error as CasError)
    expect(refusal).toBeInstanceOf(CasError)
    expect((refusal as CasError).details).toMatchObject({ expectedId: OTHER, foundId: id })
    expect((await open({ expectedId: id })).id).toBe(id)
  })
})

describe('further folders of a store', () => {
  const folders = ['state/things', 'state/others']

  test('are created with it, or for a store without one, and are required from then on', async () => {
    await open({ folders })
    await opened.pop()!.close()
    for (const each of folders) expect(fs.statSync(join(root, each)).mode & 0o777).toBe(0o700)
    fs.rmdirSync(join(root, folders[1]!))
    expect(await codeOf(open({ folders }))).toBe('E_FORMAT')
    fs.unlinkSync(join(root, 'id'))
    await open({ folders })
    expect(fs.existsSync(join(root, folders[1]!))).toBe(true)
  })

  test('of blobs: a store without its blobs is not opened as an empty one', async () => {
    const store = await open()
    await store.ingest(inChunks(seededBytes(10), 10))
    await opened.pop()!.close()
    fs.renameSync(join(root, 'blobs'), join(root, 'blobs-elsewhere'))
    expect(await codeOf(open())).toBe('E_FORMAT')
    fs.mkdirSync(join(root, 'blobs', 'sha256'), { recursive: true, mode: 0o700 })
    expect(await codeOf(open())).toBe('E_FORMAT')
    expect(fs.readdirSync(join(root, 'blobs', 'sha256'))).toEqual([])
  })
})

describe('a root that goes away while it is open (spec disk.22)', () => {
  const away = (): string => join(folder.path, 'away')
  const missing = 'sha256:'.padEnd(7 + 64, 'a') as never

  const everyCall = (store: DiskBlobStore): Readonly<Record<string, () => Promise<unknown>>> => ({
    requireRoot: async () => store.requireRoot(),
    requireOwner: () => store.requireOwner(),
    check: async () => store.check(),
    stat: () => store.stat(missing),
    open: () => store.open(missing),
    list: async () => {
      for await (const _ of store.list());
    },
    scrub: () => store.scrub(),
    verify: () => store.verify(missing),
    remove: () => store.remove(missing),
    ingest: () => store.ingest(inChunks(seededBytes(10), 10)),
    'ingest of a large one': () => store.ingest(inChunks(seededBytes(5 << 20), 65_536)),
    partial: () => store.partial({ key: 'k', sizeBytes: 100 })
  })

  const changes: Readonly<Record<string, () => void>> = {
    'renamed away': () => fs.renameSync(root, away()),
    'with an empty folder in its place': () => {
      fs.renameSync(root, away())
      fs.mkdirSync(root, { mode: 0o700 })
    },
    'with a copy of it in its place': () => {
      fs.renameSync(root, away())
      fs.cpSync(away(), root, { recursive: true })
    },
    emptied: () => {
      for (const name of fs.readdirSync(root)) fs.rmSync(join(root, name), { recursive: true })
    }
  }

  for (const [name, change] of Object.entries(changes)) {
    test(`${name}: every call is refused, and nothing is written there`, async () => {
      const store = await open()
      change()
      const before = fs.existsSync(root) ? fs.readdirSync(root, { recursive: true }).sort() : undefined
      for (const [call, run] of Object.entries(everyCall(store))) expect(await codeOf(run()), call).toBe('E_STORE_GONE')
      expect(fs.existsSync(root) ? fs.readdirSync(root, { recursive: true }).sort() : undefined).toEqual(before)
    })
  }

  test('is used again once the same folder is back', async () => {
    const store = await open()
    const { digest } = await store.ingest(inChunks(seededBytes(10), 10))
    fs.renameSync(root, away())
    expect(await codeOf(store.stat(digest))).toBe('E_STORE_GONE')
    fs.renameSync(away(), root)
    expect(await store.stat(digest)).toMatchObject({ digest })
    expect(await store.stat(missing)).toBeUndefined()
  })

  test('a missing folder inside it does not count as empty', async () => {
    const store = await open({ folders: ['state/things'] })
    const { digest } = await store.ingest(inChunks(seededBytes(10), 10))
    const shard = join('blobs', 'sha256', digest.slice(7, 9))
    for (const each of ['state/things', 'incoming', 'quarantine', 'blobs/sha256', 'blobs']) {
      fs.renameSync(join(root, each), away())
      expect(await codeOf((async () => store.check())()), each).toBe('E_STORE_GONE')
      fs.renameSync(away(), join(root, each))
    }
    store.check()
    fs.renameSync(join(root, shard), away())
    expect(await codeOf(store.stat(digest))).toBe('E_STORE_GONE')
    expect(await codeOf(store.open(digest))).toBe('E_STORE_GONE')
    expect(await codeOf(store.verify(digest))).toBe('E_STORE_GONE')
    expect(await codeOf(store.scrub())).toBe('E_STORE_GONE')
    expect(await codeOf(store.remove(digest))).toBe('E_STORE_GONE')
    fs.renameSync(away(), join(root, shard))
    expect(await store.stat(digest)).toMatchObject({ digest })
  })
})
