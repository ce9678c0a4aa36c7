// A file system that grants the lock of a store twice: the second owner stops before it changes anything, or the first one does.
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type BlobStore, CasError, type DiskBlobStore, type DiskStoreOptions, openDiskStore } from '@svc/cas'
import { codeOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { type Clock, systemClock } from '@svc/internal-clock'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

const NFS = 0x6969
const nfs = { module: new URL('./network-file-system-port.ts', import.meta.url).href, options: NFS }

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let root: string
const opened: BlobStore[] = []
const ownerFile = (): string => join(root, 'owner')

async function open(options: Partial<DiskStoreOptions> = {}): Promise<DiskBlobStore> {
  const store = await openDiskStore({ root, hashThreads: 1, ...options })
  opened.push(store)
  return store
}
async function refusal(options: Partial<DiskStoreOptions> = {}): Promise<CasError> {
  const error = await open(options).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(CasError)
  return error as CasError
}
const put = async (store: BlobStore) => (await store.ingest(inChunks(seededBytes(100), 100))).digest

beforeEach(async () => {
  folder = await temporaryFolder()
  root = join(folder.path, 'store')
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await Promise.all(opened.splice(0).map((store) => store.close()))
  await folder.dispose()
})

/** From here on, every lock is granted. */
function grantEveryLock(): void {
  const bin = join(folder.path, 'bin')
  fs.mkdirSync(bin)
  fs.writeFileSync(join(bin, 'flock'), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`)
}

/** Another process with the store open. */
async function otherProcess() {
  const script = `
    const { openDiskStore } = await import(${JSON.stringify(import.meta.resolve('../src/index.ts'))})
    const store = await openDiskStore({ root: ${JSON.stringify(root)}, hashThreads: 1 })
    console.log('open')
    process.stdin.on('data', async () => {
      console.log(await store.requireOwner().then(() => 'sole', ({ code, message }) => code + ' ' + message))
    })`
  const child = spawn(process.execPath, ['--conditions=svc-source', '--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit']
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async (): Promise<string | undefined> => (await lines.next()).value
  expect(await line()).toBe('open')
  return {
    pid: child.pid!,
    ask: () => {
      child.stdin.write('?\n')
      return line()
    },
    async kill() {
      child.kill('SIGKILL')
      await new Promise((gone) => child.once('close', gone))
    }
  }
}

/** A clock whose sleeps are over at once, each after what the test does then; and beats come when the test says. */
function testClock(during: (sleptMs: number) => void = () => undefined) {
  let sleptMs = 0
  const beats: (() => void)[] = []
  const clock: Clock = {
    ...systemClock,
    sleep: async (ms) => during((sleptMs += ms)),
    every: (_ms, run) => {
      beats.push(run)
      return { cancel: () => void beats.splice(0) }
    }
  }
  return { clock, beats, slept: () => sleptMs }
}

interface Written {
  nonce: string
  pid: number
  beat: number
  [key: string]: unknown
}
const written = (): Written => JSON.parse(fs.readFileSync(ownerFile(), 'utf8'))

/** What a process of another machine would write. */
function writeElsewhere(more: Partial<Written> = {}): void {
  const own = {
    startTime: '7',
    machine: 'else/1',
    host: 'else',
    folder: '1:1',
    nonce: 'f00',
    pid: 4711,
    beat: 0,
    ...more
  }
  fs.writeFileSync(ownerFile(), JSON.stringify(own))
}

describe('two processes of one machine, to both of which the lock was granted', () => {
  test('the second is refused while the first lives, by name; a killed one is taken over', async () => {
    grantEveryLock()
    const other = await otherProcess()
    const error = await refusal()
    expect([error.code, error.details.pid]).toEqual(['E_LOCKED', other.pid])
    expect(error.message).toContain(String(other.pid))
    expect(await other.ask()).toBe('sole')
    await other.kill()
    const store = await open()
    await put(store)
    expect((await refusal()).code).toBe('E_LOCKED')
  })

  test('the lock’s file is removed: the second is refused as well', async () => {
    const other = await otherProcess()
    fs.unlinkSync(join(root, 'lock'))
    expect((await refusal()).details.pid).toBe(other.pid)
    expect(await other.ask()).toMatch(/^E_STORE_GONE/)
  })

  test('both files are removed: the first removes and replaces nothing from then on', async () => {
    const other = await otherProcess()
    fs.unlinkSync(join(root, 'lock'))
    fs.unlinkSync(ownerFile())
    await put(await open())
    expect(await other.ask()).toMatch(/^E_STORE_GONE/)
  })

  test('a copy of a store that is open has no owner', async () => {
    await otherProcess()
    const copy = join(folder.path, 'copy')
    fs.cpSync(root, copy, { recursive: true })
    await put(await open({ root: copy }))
  })
})

describe('another machine, on a network file system', () => {
  const waited = { filePort: nfs }

  test('that counts up is the owner: it is named, and nothing is changed', async () => {
    await (await open()).close()
    writeElsewhere()
    const before = fs.readdirSync(root, { recursive: true }).sort()
    const { clock, slept } = testClock((ms) => ms >= 15_000 && writeElsewhere({ beat: 1 }))
    const error = await refusal({ ...waited, clock })
    expect(error.code).toBe('E_LOCKED')
    for (const part of ['4711', 'else']) expect(error.message).toContain(part)
    expect(slept()).toBe(15_000)
    expect(fs.readdirSync(root, { recursive: true }).sort()).toEqual(before)
    expect(written().nonce).toBe('f00')
  })

  test('that was silent for 20 s has ended; on a local disk nobody waits', async () => {
    await (await open()).close()
    writeElsewhere()
    const { clock, slept } = testClock()
    await (await open({ ...waited, clock })).close()
    expect(slept()).toBe(21_000)
    writeElsewhere()
    await (await open({ clock: testClock(() => expect.unreachable()).clock })).close()
  })

  test('that begins at the same moment: whose name stays is the owner', async () => {
    const { clock } = testClock(() => writeElsewhere())
    expect((await refusal({ ...waited, clock })).code).toBe('E_LOCKED')
    expect(written().nonce).toBe('f00')
  })

  test('that took the store over, as from a suspended machine: nothing more is removed, also after it has ended', async () => {
    const { clock, beats } = testClock()
    const store = await open({ ...waited, clock })
    const digest = await put(store)
    const path = store.blobPath(digest)
    writeElsewhere()
    expect(await codeOf(store.remove(digest))).toBe('E_STORE_GONE')
    fs.unlinkSync(ownerFile())
    for (const call of [() => store.remove(digest), () => store.requireOwner(), () => put(store)])
      expect(await codeOf(call())).toBe('E_STORE_GONE')
    const error = await store.requireOwner().catch((thrown: Error) => thrown)
    expect(error?.message).toContain('else')
    expect(fs.existsSync(path)).toBe(true)
    for (const beat of beats) beat()
    await store.close()
    expect(fs.existsSync(ownerFile())).toBe(false)
  })

  test('sees that this one counts up; a beat does not take the store back', async () => {
    const { clock, beats } = testClock()
    const store = await open({ ...waited, clock })
    expect([written().beat, beats.length]).toEqual([0, 1])
    beats[0]!()
    await store.requireOwner()
    expect(written().beat).toBe(1)
    writeElsewhere()
    beats[0]!()
    expect(await codeOf(store.requireOwner())).toBe('E_STORE_GONE')
    expect(written().nonce).toBe('f00')
    expect(() => store.requireRoot()).toThrow('else')
    await store.close()
    expect(written().nonce).toBe('f00')
  })

  test('an owner’s file that is damaged names nobody', async () => {
    await (await open()).close()
    for (const text of ['', '{', 'null', '[]', '{"pid":0}', ' '.repeat(5000), JSON.stringify({ pid: 1, beat: 0 })]) {
      fs.writeFileSync(ownerFile(), text)
      await (await open({ ...waited, clock: testClock().clock })).close()
    }
    expect(fs.existsSync(ownerFile())).toBe(false)
  })
})

test('an owner that ended well leaves no name; the file is private', async () => {
  const store = await open()
  expect(fs.statSync(ownerFile()).mode & 0o777).toBe(0o600)
  expect(written().pid).toBe(process.pid)
  await store.close()
  expect(fs.existsSync(ownerFile())).toBe(false)
})
