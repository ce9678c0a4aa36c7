import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BlobStore, CasError, type DiskBlobStore, type DiskStoreOptions, openDiskStore } from '@svc/cas'
import { codeOf, collect, digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let root: string
const opened: BlobStore[] = []
async function open(options: Partial<DiskStoreOptions> = {}): Promise<DiskBlobStore> {
  const store = await openDiskStore({ root, ...options })
  opened.push(store)
  return store
}
const put = async (store: BlobStore, bytes: Uint8Array) => (await store.ingest(inChunks(bytes, 65_536))).digest
const modeOf = (path: string): number => fs.lstatSync(path).mode & 0o777

beforeEach(async () => {
  folder = await temporaryFolder()
  root = join(folder.path, 'store')
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
  await folder.dispose()
})

describe('layout', () => {
  test('is that of spec disk.1, disk.2, with its modes, whatever the umask', async () => {
    const umask = process.umask(0o777)
    let digest
    const partialBytes = seededBytes(50)
    try {
      const store = await open()
      digest = await put(store, seededBytes(10))
      await put(store, seededBytes(300_000))
      const partial = await store.partial({ key: 'k', sizeBytes: 100 })
      await partial.write(0, partialBytes)
      await partial.release()
    } finally {
      process.umask(umask)
    }
    expect(fs.readdirSync(root).sort()).toEqual(['blobs', 'format', 'id', 'incoming', 'lock', 'owner', 'quarantine'])
    expect(fs.readFileSync(join(root, 'format'), 'utf8')).toBe('svc-store 1\n')
    const hex = digest.slice(7)
    const shard = join(root, 'blobs', 'sha256', hex.slice(0, 2))
    expect(opened[0] !== undefined && (opened[0] as DiskBlobStore).blobPath(digest)).toBe(join(shard, hex.slice(2)))
    for (const path of ['', 'blobs', 'blobs/sha256', 'incoming', 'quarantine'])
      expect(modeOf(join(root, path))).toBe(0o700)
    expect(modeOf(shard)).toBe(0o700)
    expect(modeOf(join(shard, hex.slice(2)))).toBe(0o444)
    for (const path of ['format', 'id', 'lock', 'owner']) expect(modeOf(join(root, path))).toBe(0o600)
    const left = fs.readdirSync(join(root, 'incoming'))
    expect(left.length).toBe(2)
    for (const name of left) expect(modeOf(join(root, 'incoming', name)) & 0o177).toBe(0)
  })

  test('refuses a root that others can write, with other files in it, or of another version', async () => {
    fs.mkdirSync(root)
    for (const mode of [0o777, 0o770, 0o702]) {
      fs.chmodSync(root, mode)
      expect(await codeOf(open())).toBe('E_UNSAFE_ROOT')
    }
    fs.chmodSync(root, 0o755)
    fs.writeFileSync(join(root, 'thesis.txt'), 'x')
    expect(await codeOf(open())).toBe('E_FORMAT')
    expect(fs.readFileSync(join(root, 'thesis.txt'), 'utf8')).toBe('x')
    fs.unlinkSync(join(root, 'thesis.txt'))
    await (await open()).close()
    expect(modeOf(root)).toBe(0o700)
    for (const text of ['svc-store 2\n', '', 'svc-store 1', 'x'.repeat(100)]) {
      fs.writeFileSync(join(root, 'format'), text)
      expect(await codeOf(open())).toBe('E_FORMAT')
    }
    fs.writeFileSync(join(folder.path, 'file'), '')
    expect(await codeOf(openDiskStore({ root: join(folder.path, 'file') }))).toBe('E_FORMAT')
  })

  test.skipIf(process.geteuid?.() !== 0)('refuses a root of another user', async () => {
    fs.mkdirSync(root, 0o700)
    fs.chownSync(root, 12345, 12345)
    expect(await codeOf(open())).toBe('E_UNSAFE_ROOT')
  })
})

describe('lock', () => {
  test('a second opener is refused, with the pid of the owner; after close the root is free', async () => {
    const store = await open()
    expect(store.lockKind).toBe('flock')
    const error = await openDiskStore({ root }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CasError)
    expect([(error as CasError).code, (error as CasError).details.pid]).toEqual(['E_LOCKED', process.pid])
    await store.close()
    await (await open()).close()
  })

  test('exactly one of several starts at the same moment wins', async () => {
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => open()))
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBe(1)
    const codes = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as CasError).code] : []))
    expect(new Set(codes)).toEqual(new Set(['E_LOCKED']))
  })

  const openIn = (path: string, env: Record<string, string>) => {
    const script = `
      process.on('warning', ({ code }) => console.error(code))
      const { openDiskStore } = await import(${JSON.stringify(import.meta.resolve('../src/index.ts'))})
      try { console.log((await openDiskStore({ root: ${JSON.stringify(path)} })).lockKind) } catch (error) { console.log(error.code, error.details.pid) }
      setImmediate(() => process.kill(process.pid, 'SIGKILL'))`
    const args = ['--conditions=svc-source', '--input-type=module', '-e', script]
    const { stdout, stderr, pid } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env }
    })
    return { said: stdout.trim(), warned: stderr.includes('SVC_WEAK_LOCK'), pid }
  }

  test('a lock left by kill -9 is taken over', async () => {
    expect(openIn(root, {}).said).toBe('flock')
    expect((await open()).lockKind).toBe('flock')
    expect(openIn(root, {}).said).toBe(`E_LOCKED ${process.pid}`)
  })

  test('without the flock program a pid file is used instead, with a warning', async () => {
    const nowhere = { PATH: folder.path }
    const first = openIn(root, nowhere)
    expect([first.said, first.warned]).toEqual(['pid-file', true])
    expect(openIn(root, nowhere).said).toBe('pid-file')
    const store = await open()
    expect(openIn(root, nowhere).said).toBe(`E_LOCKED ${process.pid}`)
    await store.close()
  })
})

describe('defects on disk', () => {
  test('a corrupt blob is quarantined, counts as missing, and can be ingested again', async () => {
    const store = await open()
    for (const sizeBytes of [1000, 5_000_000]) {
      const bytes = seededBytes(sizeBytes)
      const digest = await put(store, bytes)
      fs.chmodSync(store.blobPath(digest), 0o600)
      const fd = fs.openSync(store.blobPath(digest), 'r+')
      fs.writeSync(fd, Buffer.from([(bytes[777] as number) ^ 4]), 0, 1, 777)
      fs.closeSync(fd)
      expect((await store.verify(digest)).status).toBe('mismatched')
      expect(await store.stat(digest)).toBe(undefined)
      const [aside] = fs.readdirSync(join(root, 'quarantine'))
      expect(aside).toMatch(new RegExp(`^${digest.slice(7)}-[0-9a-f]+$`))
      fs.unlinkSync(join(root, 'quarantine', aside as string))
      expect((await store.ingest(inChunks(bytes, 65_536))).existed).toBe(false)
      expect((await store.verify(digest)).status).toBe('ok')
    }
  })

  test('scrub finds every corrupt blob, small and large, and continues', async () => {
    const store = await open()
    const digests = []
    for (let i = 0; i < 30; i++) digests.push(await put(store, seededBytes(100 + i, i)))
    digests.push(await put(store, seededBytes(5_000_000)))
    const bad = [digests[3], digests[17], digests[30]].sort()
    for (const digest of bad) {
      fs.chmodSync(store.blobPath(digest as never), 0o600)
      fs.appendFileSync(store.blobPath(digest as never), 'x')
    }
    const left = await store.scrub()
    expect(left).toEqual({ checked: 31, mismatched: bad })
    expect(await store.scrub()).toEqual({ checked: 28, mismatched: [] })
  })

  test('a file of the wrong size is replaced by an ingest of the right bytes; one that is right keeps its inode', async () => {
    const store = await open()
    const bytes = seededBytes(300_000)
    const digest = await put(store, bytes)
    const { ino } = fs.statSync(store.blobPath(digest))
    expect((await store.ingest(inChunks(bytes, 65_536))).existed).toBe(true)
    expect(fs.statSync(store.blobPath(digest)).ino).toBe(ino)
    fs.chmodSync(store.blobPath(digest), 0o600)
    fs.truncateSync(store.blobPath(digest), 10)
    expect((await store.ingest(inChunks(bytes, 65_536))).existed).toBe(false)
    expect(fs.readdirSync(join(root, 'quarantine')).length).toBe(1)
    expect((await store.verify(digest)).status).toBe('ok')
  })

  test('links, folders and FIFOs at a blob’s path are never followed', async () => {
    const store = await open()
    const bytes = seededBytes(1000)
    const digest = digestOf(bytes)
    const path = store.blobPath(digest)
    fs.writeFileSync(join(folder.path, 'secret'), bytes)
    const wrongs = [
      () => fs.symlinkSync(join(folder.path, 'secret'), path),
      () => fs.mkdirSync(path),
      () => void spawnSync('mkfifo', [path])
    ]
    for (const wrong of wrongs) {
      wrong()
      expect(await codeOf(store.stat(digest))).toBe('E_CORRUPT')
      expect(await codeOf(store.open(digest))).toBe('E_CORRUPT')
      expect(await collect(store.list())).toEqual([])
      expect((await store.verify(digest)).status).toBe('mismatched')
      expect(await store.stat(digest)).toBe(undefined)
      wrong()
      expect((await store.ingest(inChunks(bytes, 99))).existed).toBe(false)
      expect((await store.verify(digest)).status).toBe('ok')
      fs.unlinkSync(path)
    }
  })

  test('files that do not belong to the store are left alone', async () => {
    const store = await open()
    const digest = await put(store, seededBytes(10))
    const shard = join(root, 'blobs', 'sha256', digest.slice(7, 9))
    for (const name of ['README', 'A'.repeat(62), '0'.repeat(61)]) fs.writeFileSync(join(shard, name), 'x')
    fs.writeFileSync(join(root, 'blobs', 'sha256', 'zz'), 'x')
    fs.writeFileSync(join(root, 'incoming', 'note.txt'), 'x')
    expect((await collect(store.list())).map((info) => info.digest)).toEqual([digest])
    expect((await store.scrub()).checked).toBe(1)
    await store.close()
    await open()
    expect(fs.readdirSync(join(root, 'incoming'))).toEqual(['note.txt'])
  })
})

test('a blob that does not fit is refused before the first byte', async () => {
  const store = await open()
  const sizeBytes = (await store.freeBytes()) * 2
  let pulled = false
  async function* source(): AsyncGenerator<Uint8Array> {
    pulled = true
    yield new Uint8Array(1)
  }
  expect(await codeOf(store.ingest(source(), { sizeBytes }))).toBe('E_NO_SPACE')
  expect(pulled).toBe(false)
  expect(await codeOf(store.partial({ key: 'k', sizeBytes }))).toBe('E_NO_SPACE')
})

test('a file that grows or shrinks while it is read is refused', async () => {
  const store = await open()
  const path = join(folder.path, 'source')
  for (const change of [() => fs.appendFileSync(path, 'x'), () => fs.truncateSync(path, 100_000_000)]) {
    fs.writeFileSync(path, '')
    fs.truncateSync(path, 200_000_000)
    const fd = fs.openSync(path, 'r')
    let changed = false
    const onProgress = (): void => {
      if (!changed) change()
      changed = true
    }
    expect(await codeOf(store.ingest({ fd }, { onProgress }))).toBe('E_SIZE_MISMATCH')
    fs.closeSync(fd)
  }
  expect(fs.readdirSync(join(root, 'incoming'))).toEqual([])
})

test('an abort releases the caller’s descriptor before it is reported', async () => {
  const store = await open()
  const path = join(folder.path, 'source')
  fs.writeFileSync(path, '')
  fs.truncateSync(path, 300_000_000)
  await store.ingest(inChunks(seededBytes(300_000), 65_536))
  const before = await openDescriptors()
  const fd = fs.openSync(path, 'r')
  const controller = new AbortController()
  let readBytes = 0
  const onProgress = (bytes: number): void => {
    readBytes = bytes
    controller.abort()
  }
  const failed = codeOf(store.ingest({ fd }, { signal: controller.signal, onProgress }))
  expect(await failed).toBe('E_ABORTED')
  fs.closeSync(fd)
  expect(readBytes).toBeLessThan(300_000_000)
  expect(fs.readdirSync(join(root, 'incoming'))).toEqual([])
  expect(await openDescriptors()).toBeLessThanOrEqual(before + 20)
})

test('the README example runs', async () => {
  const readme = fs.readFileSync(fileURLToPath(new URL('../README.md', import.meta.url)), 'utf8')
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] as string
  const script = join(folder.path, 'example.mts')
  fs.writeFileSync(script, example.replace(/from '@svc\/cas'/g, `from '${import.meta.resolve('../src/index.ts')}'`))
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--conditions=svc-source', script], {
    encoding: 'utf8',
    cwd: folder.path
  })
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toBe('sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 5 bytes\nhello\nok\n')
})
